package binding

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/binding/heard"
	"github.com/flotilla-io/flotilla/reconciler/undelete"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// TestWithdraw: Works that end along with their binding are not deleted, and the binding stays
// until they have ended, or the time for that is over.
func TestWithdraw(t *testing.T) {
	now := time.Unix(1000, 0)
	others := func(w *workv1alpha1.Work) { w.Finalizers = append(w.Finalizers, "example.com/another") }
	marked := func(w *workv1alpha1.Work) { w.DeletionTimestamp = &metav1.Time{Time: now} }
	for name, tc := range map[string]struct {
		works []*workv1alpha1.Work
		ago   time.Duration // since the binding was deleted
		ends  map[string]bool
		wrote map[string]bool
		after time.Duration
	}{
		"nobody ends them":                  {works: []*workv1alpha1.Work{work("a"), work("b")}, wrote: map[string]bool{"delete a": true, "delete b": true, "patch ": true}},
		"they end by themselves":            {works: []*workv1alpha1.Work{work("a"), work("b")}, ends: map[string]bool{"a": true, "b": true}, wrote: map[string]bool{}, after: 10 * time.Second},
		"they have ended":                   {ends: map[string]bool{"a": true, "b": true}, wrote: map[string]bool{"patch ": true}},
		"one cluster does not answer":       {works: []*workv1alpha1.Work{work("a"), work("b")}, ends: map[string]bool{"a": true}, wrote: map[string]bool{"delete b": true}, after: 10 * time.Second},
		"a while ago":                       {works: []*workv1alpha1.Work{work("a")}, ago: 7 * time.Second, ends: map[string]bool{"a": true}, wrote: map[string]bool{}, after: 3 * time.Second},
		"too long ago":                      {works: []*workv1alpha1.Work{work("a")}, ago: 10 * time.Second, ends: map[string]bool{"a": true}, wrote: map[string]bool{"delete a": true, "patch ": true}},
		"by a clock that was ahead":         {works: []*workv1alpha1.Work{work("a")}, ago: -time.Minute, ends: map[string]bool{"a": true}, wrote: map[string]bool{"delete a": true, "patch ": true}},
		"somebody else holds one":           {works: []*workv1alpha1.Work{work("a", others)}, ends: map[string]bool{"a": true}, wrote: map[string]bool{"delete a": true, "patch ": true}},
		"one is being deleted":              {works: []*workv1alpha1.Work{work("a", marked)}, ends: map[string]bool{"a": true}, wrote: map[string]bool{"patch ": true}},
		"one is in a cluster that was left": {works: []*workv1alpha1.Work{work("c")}, ends: map[string]bool{"c": true}, wrote: map[string]bool{"delete c": true, "patch ": true}},
	} {
		t.Run(name, func(t *testing.T) {
			c := clocktesting.NewFakePassiveClock(now)
			hub := &writeRecorder{wrote: map[string]bool{}}
			p := writer{
				hub: hub, parallel: 1, clock: c, written: writecache.New[*workv1alpha1.Work](c), own: writecache.New[workv1alpha2.Binding](c), there: heard.NewPresence(c, nil), recalls: undelete.Recaller{Leaving: nothingLeaves},
				cluster: func(_ context.Context, name string) (*clusterv1alpha1.Cluster, bool, error) {
					return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}, true, nil
				},
			}
			if tc.ends != nil {
				p.ends = func(c *clusterv1alpha1.Cluster) bool { return tc.ends[c.Name] }
			}
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web-deployment", UID: "b", DeletionTimestamp: &metav1.Time{Time: now.Add(-tc.ago)}, Finalizers: []string{workv1alpha2.BindingControllerFinalizer},
			}}
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "a"}, {Name: "b"}}
			next, err := p.finalize(t.Context(), &state{binding: b, works: tc.works})
			if err != nil || !next.Done || next.After != tc.after {
				t.Errorf("finalize = %+v, %v, want it to look again after %s", next, err, tc.after)
			}
			if diff := cmp.Diff(tc.wrote, hub.wrote); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}
