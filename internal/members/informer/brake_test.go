package informer

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestAWatchThatEndsAsSoonAsItBegins: a member that calls each version expired, in either
// way, or refuses to be read, is not asked all the time, and the kind is reported.
func TestAWatchThatEndsAsSoonAsItBegins(t *testing.T) {
	expired := &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old"}
	stream := func() (watch.Interface, error) {
		events := watch.NewFakeWithChanSize(1, false)
		events.Error(expired)
		events.Stop()
		return events, nil
	}
	forbidden := apierrors.NewForbidden(ships.Resource.GroupResource(), "", errors.New("no"))
	for name, tc := range map[string]struct {
		list  error
		watch func() (watch.Interface, error)
		why   string
	}{
		"an answer that it is expired": {nil, func() (watch.Interface, error) { return nil, apierrors.NewResourceExpired("too old") }, "its watch ends as soon as it begins"},
		"a stream that says so":        {nil, stream, "its watch ends as soon as it begins"},
		"it may not be read":           {forbidden, func() (watch.Interface, error) { return nil, forbidden }, "the control plane may not list or watch it there"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{ships.Resource: "ShipList"})
				var asked atomic.Int32
				client.PrependReactor("list", "ships", func(clienttesting.Action) (bool, runtime.Object, error) {
					asked.Add(1)
					return tc.list != nil, nil, tc.list
				})
				client.PrependWatchReactor("ships", func(clienttesting.Action) (bool, watch.Interface, error) {
					asked.Add(1)
					w, err := tc.watch()
					return true, w, err
				})
				ctx, cancel := context.WithCancel(t.Context())
				w := newWatch(client, func(context.Context, schema.GroupVersionKind) (Kind, error) { return ships, nil })
				done := make(chan struct{})
				go func() {
					defer close(done)
					w.run(ctx)
				}()
				<-time.After(2 * time.Minute) // of the bubble
				synctest.Wait()
				if got := asked.Load(); got > 2*burst+2*60 {
					t.Errorf("asked %d times in two minutes", got)
				}
				if err := blind(w, 30*time.Second); err == nil || why(err) != tc.why {
					t.Errorf("why it cannot be read: %v", err)
				}
				if _, presence := w.read(types.NamespacedName{Namespace: "sea", Name: "one"}); presence != Unknown {
					t.Errorf("what is known of an object is %d", presence)
				}
				cancel()
				<-done
			})
		})
	}
}

// TestAMemberThatWasAwayIsSeenAtOnce: what a member refuses while it is away says nothing
// about the watches that it will hold.
func TestAMemberThatWasAwayIsSeenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{ships.Resource: "ShipList"})
		var back atomic.Bool
		listed := make(chan struct{}, 1)
		client.PrependReactor("list", "ships", func(clienttesting.Action) (bool, runtime.Object, error) {
			if !back.Load() {
				return true, nil, apierrors.NewServiceUnavailable("away")
			}
			listed <- struct{}{}
			return false, nil, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		w := newWatch(client, func(context.Context, schema.GroupVersionKind) (Kind, error) { return ships, nil })
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.run(ctx)
		}()
		<-time.After(time.Minute) // of the bubble
		back.Store(true)
		<-listed
		<-time.After(time.Second) // of the bubble
		synctest.Wait()
		if err := blind(w, 0); err != nil {
			t.Errorf("it cannot be read: %v", err)
		}
		if _, presence := w.read(types.NamespacedName{Namespace: "sea", Name: "one"}); presence != Absent {
			t.Errorf("what is known of an object is %d, want %d", presence, Absent)
		}
		cancel()
		<-done
	})
}
