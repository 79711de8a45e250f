package informer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// swamp is a client that does not answer reads of some objects for as long as it
// is asked.
type swamp struct {
	dynamic.Interface
	sunk func(name string) bool
	asks *atomic.Int32 // reads that are under way
	most *atomic.Int32 // the most that were at once
}

func (s swamp) Resource(r schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return swampResource{s.Interface.Resource(r), s}
}

// IsWatchListSemanticsUnSupported is so for clients that only pretend.
func (swamp) IsWatchListSemanticsUnSupported() bool { return true }

type swampResource struct {
	dynamic.NamespaceableResourceInterface
	swamp swamp
}

func (s swampResource) Namespace(name string) dynamic.ResourceInterface {
	return swampSpace{s.NamespaceableResourceInterface.Namespace(name), s.swamp}
}

type swampSpace struct {
	dynamic.ResourceInterface
	swamp swamp
}

func (s swamp) note() {
	for now := s.asks.Add(1); ; {
		if most := s.most.Load(); now <= most || s.most.CompareAndSwap(most, now) {
			return
		}
	}
}

func (s swampSpace) Get(ctx context.Context, name string, o metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	if !s.swamp.sunk(name) {
		return s.ResourceInterface.Get(ctx, name, o, sub...)
	}
	s.swamp.note()
	defer s.swamp.asks.Add(-1)
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestAReadThatHangsDelaysNoOther(t *testing.T) {
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "sea", Name: name} }
	for name, hung := range map[string]int{
		"one":                                1,
		"as many as are under way, less one": mostReads - 1,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				// Whose rule failed is read again when it may answer otherwise.
				o := &oracle{health: map[string]any{"well": passing{errors.New("out of reach")}}}
				objects := []runtime.Object{ship("well")}
				for i := range hung {
					sunk := fmt.Sprint("sunk-", i)
					o.health[sunk] = passing{errors.New("out of reach")}
					objects = append(objects, ship(sunk))
				}
				var away atomic.Bool
				away.Store(true)
				w, _ := harbour(o, objects...)
				w.client = swamp{w.client, func(name string) bool { return away.Load() && name != "well" }, &atomic.Int32{}, &atomic.Int32{}}
				go w.recheck.run(ctx)
				go w.run(ctx)
				synctest.Wait()
				o.mu.Lock()
				clear(o.health)
				o.mu.Unlock()
				<-time.After(1100 * time.Millisecond) // of the bubble
				synctest.Wait()
				if got, _ := w.read(key("well")); got == nil || got.Health != workv1alpha1.ResourceHealthy {
					t.Errorf("what answers waits for what does not: %+v", got)
				}
				if got, _ := w.read(key("sunk-0")); got == nil || got.Fault == "" {
					t.Errorf("what does not answer: %+v", got)
				}
				away.Store(false)
				<-time.After(longestRead + latest) // of the bubble
				synctest.Wait()
				for i := range hung {
					if got, _ := w.read(key(fmt.Sprint("sunk-", i))); got == nil || got.Health != workv1alpha1.ResourceHealthy {
						t.Errorf("once it answers again: %+v", got)
					}
				}
				if len(w.recheck.kept) != 0 || len(w.recheck.due) != 0 || len(w.recheck.lines[w].reading) != 0 || w.recheck.lines[w].readers != 0 {
					t.Errorf("left: %v, %v, %v", w.recheck.kept, w.recheck.due, w.recheck.lines[w])
				}
			})
		})
	}
}

func TestReadsThatHangAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := &oracle{health: map[string]any{}}
		var objects []runtime.Object
		for i := range 3 * mostReads {
			o.health[fmt.Sprint("sunk-", i)] = passing{errors.New("out of reach")}
			objects = append(objects, ship(fmt.Sprint("sunk-", i)))
		}
		w, _ := harbour(o, objects...)
		s := swamp{w.client, func(string) bool { return true }, &atomic.Int32{}, &atomic.Int32{}}
		w.client = s
		go w.recheck.run(ctx)
		go w.run(ctx)
		<-time.After(time.Minute) // of the bubble
		synctest.Wait()
		if most := s.most.Load(); most != mostReads {
			t.Errorf("%d reads were under way at once", most)
		}
		cancel()
		synctest.Wait()
		if left := s.asks.Load(); left != 0 {
			t.Errorf("%d reads go on after the end", left)
		}
	})
}

// TestAnotherKindIsReadThoughOneHangs: kinds have places of their own.
func TestAnotherKindIsReadThoughOneHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := &oracle{health: map[string]any{"well": passing{errors.New("out of reach")}}}
		var objects []runtime.Object
		for i := range 2 * mostReads {
			o.health[fmt.Sprint("sunk-", i)] = passing{errors.New("out of reach")}
			objects = append(objects, ship(fmt.Sprint("sunk-", i)))
		}
		hung, _ := harbour(o, objects...)
		hung.client = swamp{hung.client, func(string) bool { return true }, &atomic.Int32{}, &atomic.Int32{}}
		well, _ := harbour(o, ship("well"))
		well.recheck = hung.recheck // they are kinds of one member
		go well.recheck.run(ctx)
		go hung.run(ctx)
		go well.run(ctx)
		synctest.Wait()
		o.say("well", workv1alpha1.ResourceHealthy)
		<-time.After(1100 * time.Millisecond) // of the bubble
		synctest.Wait()
		if got, _ := well.read(types.NamespacedName{Namespace: "sea", Name: "well"}); got == nil || got.Health != workv1alpha1.ResourceHealthy {
			t.Errorf("the other kind: %+v", got)
		}
	})
}
