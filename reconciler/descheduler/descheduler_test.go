package descheduler

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/decider"
	"github.com/flotilla-io/flotilla/reconciler/decider/decidertest"
)

type recorder struct{ events []string }

func (r *recorder) Event(obj runtime.Object, kind, reason, message string) {
	r.events = append(r.events, fmt.Sprintf("%T %s %s %s", obj, kind, reason, message))
}

// placed runs two replicas in each of two clusters.
func placed() *workv1alpha2.ResourceBinding {
	b := decidertest.Divided("web", 4)
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "a", Replicas: 2}, {Name: "b", Replicas: 2}}
	d := placement.Decision{Clusters: b.Spec.Clusters, AppliedPlacement: placement.AppliedPlacement(b.Spec.Placement),
		Record: placement.Record{Reason: workv1alpha2.BindingReasonSuccess, At: metav1.NewTime(time.Unix(1, 0))}}
	d.Put(b)
	return b
}

func TestWhatFindsNoNodeIsMovedOnce(t *testing.T) {
	const moved = "Binding has been descheduled, 1 replica(s) in cluster(a), 1 total descheduled replica(s): they found no node for 5m or longer; it runs in {a:1, b:3} instead"
	const planned = "Dry run, nothing is changed: " + moved
	cases := map[string]struct {
		dry    bool
		writes error
		waits  func(cluster string) (int32, error)
		want   string
		events []string
		fails  bool
	}{
		"moved": {want: "{a:1, b:3}", events: []string{
			"*v1alpha2.ResourceBinding Normal DescheduleBindingSucceed " + moved, "*v1.ObjectReference Normal DescheduleBindingSucceed " + moved}},
		"a dry run": {dry: true, want: "{a:2, b:2}", events: []string{
			"*v1alpha2.ResourceBinding Normal DescheduleBindingPlanned " + planned,
			"*v1.ObjectReference Normal DescheduleBindingPlanned " + planned}},
		"the binding has changed meanwhile": {writes: apierrors.NewConflict(schema.GroupResource{}, "web", errors.New("newer")), want: "{a:2, b:2}"},
		"it cannot be written": {writes: errors.New("no"), want: "{a:2, b:2}", fails: true, events: []string{
			"*v1alpha2.ResourceBinding Warning DescheduleBindingFailed no", "*v1.ObjectReference Warning DescheduleBindingFailed no"}},
		"nobody knows what waits":       {waits: func(string) (int32, error) { return 5, errors.New("out of sight") }, want: "{a:2, b:2}"},
		"a cluster that counts garbage": {waits: func(string) (int32, error) { return -7, nil }, want: "{a:2, b:2}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			index := func(i client.FieldIndexer) error { return decider.Index(context.Background(), i) }
			hub := decidertest.Hub(index, decidertest.Cluster("a", decidertest.Cores(10)), decidertest.Cluster("b", decidertest.Cores(10)), placed()).
				WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, hub client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					if tc.writes != nil {
						return tc.writes
					}
					return hub.Patch(ctx, obj, patch, opts...)
				}}).Build()
			waits := tc.waits
			if waits == nil {
				waits = func(cluster string) (int32, error) { return map[string]int32{"a": 1}[cluster], nil }
			}
			clock := clocktesting.NewFakeClock(time.Unix(9, 0))
			events := &recorder{}
			d := New(hub, decider.New(hub, decider.Options{Clock: clock}), func(_ context.Context, cluster string, _ Question) (int32, error) {
				return waits(cluster)
			}, events, Options{DryRun: tc.dry, Clock: clock})
			if err := d.Run(t.Context()); (err != nil) != tc.fails {
				t.Errorf("run: %v", err)
			}
			var is workv1alpha2.ResourceBinding
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(placed()), &is); err != nil {
				t.Fatal(err)
			}
			if got := placement.Text(is.Spec.Clusters); got != tc.want {
				t.Errorf("runs in %s, want %s", got, tc.want)
			}
			if diff := cmp.Diff(tc.events, events.events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if is.Annotations[policyv1alpha1.PolicyPlacementAnnotation] == "" {
				t.Error("the applied placement was lost")
			}
		})
	}
}
