package draining_test

import (
	"context"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/draining"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestAWatchOfASilentControlPlaneEnds: one that is started anew is waited for, and one that is gone is not for ever.
func TestAWatchOfASilentControlPlaneEnds(t *testing.T) {
	begun := time.Unix(0, 0)
	clock := clocktesting.NewFakeClock(begun)
	east := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{Taints: drain.Taints()}}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(east).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			clock.Step(time.Second)
			return &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		},
	}).Build()
	w := draining.Watch{Hub: hub, Cluster: "east", Clock: steps{clock}, Out: io.Discard, ErrOut: io.Discard}
	_, err := w.Run(t.Context())
	const want = "the control plane has given no answer for 2m0s; the drain of east goes on with it: flotilla drain east watches it: "
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if after := clock.Since(begun); after < 2*time.Minute || after > 3*time.Minute {
		t.Errorf("it ends after %s", after)
	}
}

// steps is a clock on which waiting takes no time.
type steps struct{ *clocktesting.FakeClock }

func (s steps) After(d time.Duration) <-chan time.Time {
	c := s.FakeClock.After(d)
	s.Step(d)
	return c
}

// TestAWatchEndsBeforeTheDrain: who ends the watch, or has waited for long enough, is told how to go
// on; a drain that somebody ended is not watched.
func TestAWatchEndsBeforeTheDrain(t *testing.T) {
	const goesOn = "1 of 1 is on its way, and the drain of east goes on: flotilla drain east watches it, flotilla uncordon east ends it"
	const why = "; Deployment shop/web: kept until west is healthy: see what keeps that from it: flotilla explain deployment/web -n shop; flotilla drain east --dry-run -o json has the command that gives the old copy up"
	for name, tc := range map[string]struct {
		interrupted, undone bool
		lost                bool // west
		timeout             time.Duration
		err, errOut         string
	}{
		"interrupted": {interrupted: true, err: "context canceled", errOut: goesOn + why + "\n"},
		"too long":    {timeout: time.Second, err: "not all has left within 1s: " + goesOn + why},
		"west is lost": {timeout: time.Second, lost: true,
			err:    "not all has left within 1s: " + goesOn + strings.Replace(why, "is healthy", "is healthy, and west is unreachable since 2026-01-02 12:00 UTC", 1),
			errOut: "warning: Deployment shop/web leaves east for west: kept until west is healthy, and west is unreachable since 2026-01-02 12:00 UTC\n"},
		"undone": {undone: true, err: "the drain of east was ended by somebody: flotilla drain east begins again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			east := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
			east.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
			if !tc.undone {
				east.Spec.Taints = drain.Taints()
			}
			web := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"}}}
			web.Spec = workv1alpha2.ResourceBindingSpec{
				Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, Clusters: []workv1alpha2.TargetCluster{{Name: "west"}},
				GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "east", Producer: workv1alpha2.EvictionProducerDrain}},
			}
			west := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
			west.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
			if tc.lost {
				west.Status.Conditions[0] = metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterNotReachableReason,
					LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))}
			}
			reads := 0
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(east, west, web).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, hub client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if _, isCluster := obj.(*clusterv1alpha1.Cluster); isCluster {
						reads++
					}
					if reads == 3 && tc.interrupted { // the first is that of Begin
						cancel()
					}
					return hub.Get(ctx, key, obj, opts...)
				},
			}).Build()
			var out, errOut strings.Builder
			w := draining.Watch{Hub: hub, Cluster: "east", Clock: clock.RealClock{}, Out: &out, ErrOut: &errOut, Timeout: tc.timeout}
			if err := w.Begin(ctx); err != nil {
				t.Fatal(err)
			}
			_, err := w.Run(ctx)
			if err == nil || err.Error() != tc.err {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if out.String() != "" || errOut.String() != tc.errOut {
				t.Errorf("output %q, %q; want %q", out.String(), errOut.String(), tc.errOut)
			}
		})
	}
}

// TestWhatIsThereHasNotLeft: what was moved off a cluster has left it once the Work there is gone, as that of a definition
// waits for what is of its kind.
func TestWhatIsThereHasNotLeft(t *testing.T) {
	const id = "b-1"
	east := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{Taints: drain.Taints()}}
	east.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
	boats := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "boats-customresourcedefinition", Labels: map[string]string{
		policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "p", workv1alpha2.ClusterResourceBindingPermanentIDLabel: id,
	}}}
	boats.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "boats"}
	placement.Decision{Clusters: []workv1alpha2.TargetCluster{{Name: "west"}}, Record: placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Drained: []string{"east"}}}.Put(boats)
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: workv1alpha2.ExecutionNamespace("east"), Name: "boats", Labels: map[string]string{workv1alpha2.ClusterResourceBindingPermanentIDLabel: id},
	}}
	work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkDeletionBlocked, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkHoldsOwnReason, Message: "boats goes once Boat web has left"}}
	other := work.DeepCopy()
	other.Name, other.Labels = "other", map[string]string{workv1alpha2.ClusterResourceBindingPermanentIDLabel: "b-2"}
	const goesOn = "1 of 1 is on its way, and the drain of east goes on: flotilla drain east watches it, flotilla uncordon east ends it; CustomResourceDefinition boats: boats goes once Boat web has left"
	for name, tc := range map[string]struct {
		works  []client.Object
		denied bool
		out    string
		err    string
	}{
		"its Work is there":       {works: []client.Object{work, other}, err: "not all has left within 1s: " + goesOn},
		"its Work is gone":        {works: []client.Object{other}, out: "CustomResourceDefinition boats left east for west\n"},
		"Works may not be listed": {works: []client.Object{work}, denied: true, out: "CustomResourceDefinition boats left east for west\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(append([]client.Object{east}, tc.works...)...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if _, works := list.(*metav1.PartialObjectMetadataList); works && tc.denied {
						return apierrors.NewForbidden(schema.GroupResource{Group: workv1alpha1.GroupName, Resource: "works"}, "", nil)
					}
					return hub.List(ctx, list, opts...)
				},
			}).Build()
			var out strings.Builder
			w := draining.Watch{Hub: hub, Cluster: "east", Clock: clock.RealClock{}, Out: &out, ErrOut: io.Discard, Timeout: time.Second}
			if err := w.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := hub.Create(t.Context(), boats.DeepCopy()); err != nil { // as if it had not left yet at first
				t.Fatal(err)
			}
			_, err := w.Run(t.Context())
			message := ""
			if err != nil {
				message = err.Error()
			}
			if message != tc.err || out.String() != tc.out {
				t.Errorf("output %q, error %q; want %q, %q", out.String(), message, tc.out, tc.err)
			}
		})
	}
}
