package binding

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/undelete"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// TestAwaitFormer: what must never run twice does not start while a cluster that it is not placed in has a copy of the template that was
// deleted before it was made, and that copy is not kept in case it is wanted again.
func TestAwaitFormer(t *testing.T) {
	leaving := func(cluster, id, value string) *workv1alpha1.Work {
		w := work(cluster)
		w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = id
		w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		if value != "" {
			w.Annotations[workv1alpha2.WantedAgainAnnotation] = value
		}
		return w
	}
	const before, own = "b-0", "b-1"
	text := func(clusters string) string {
		return "nothing starts before the copy of an earlier template of this name has left " + clusters + ": two must never run at once (failover.cluster.purgeMode: Directly). One that is away and will not be back is given up by flotilla unjoin"
	}
	for name, tc := range map[string]struct {
		gracefully bool
		leaves     []*workv1alpha1.Work
		there      []string // of its own Works
		unknown    bool     // the cluster is not in the fleet any more
		want       string
		patches    []string
	}{
		"nothing is left of another one":          {},
		"a former copy is elsewhere":              {leaves: []*workv1alpha1.Work{leaving("m2", before, "")}, want: text("m2")},
		"two are":                                 {leaves: []*workv1alpha1.Work{leaving("m3", before, ""), leaving("m2", before, "")}, want: text("m2, m3")},
		"one was kept in case it is wanted again": {leaves: []*workv1alpha1.Work{leaving("m2", before, "undecided")}, want: text("m2"), patches: []string{`{"metadata":{"annotations":{"propagation.flotilla.io/wanted-again":null},"uid":"w-m2"}}`}},
		"it is where this one is placed":          {leaves: []*workv1alpha1.Work{leaving("m1", before, "true")}},
		"it is its own":                           {leaves: []*workv1alpha1.Work{leaving("m2", own, "")}},
		"it runs already":                         {leaves: []*workv1alpha1.Work{leaving("m2", before, "")}, there: []string{"m1"}},
		"two may run at once":                     {gracefully: true, leaves: []*workv1alpha1.Work{leaving("m2", before, "")}},
		"the cluster has left the fleet":          {leaves: []*workv1alpha1.Work{leaving("m2", before, "")}, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
			b.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: own}
			b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: policyv1alpha1.PurgeModeDirectly}}
			if tc.gracefully {
				b.Spec.Failover.Cluster.PurgeMode = policyv1alpha1.PurgeModeGracefully
			}
			hub, clock := &patches{}, clocktesting.NewFakePassiveClock(time.Unix(9, 0))
			written := writecache.New[*workv1alpha1.Work](clock)
			cluster := func(_ context.Context, name string) (*clusterv1alpha1.Cluster, bool, error) {
				return &clusterv1alpha1.Cluster{}, !tc.unknown, nil
			}
			p := writer{hub: hub, cluster: cluster, written: written, recalls: undelete.Recaller{Hub: hub, Written: written, Clock: clock, Cluster: cluster,
				Leaving: func(context.Context, client.ObjectKey) ([]*workv1alpha1.Work, error) { return tc.leaves, nil }}}
			s := &state{binding: b, key: client.ObjectKeyFromObject(b)}
			for _, c := range tc.there {
				s.works = append(s.works, work(c))
			}
			_, err := awaitFormer(t.Context(), p, s)
			if got := fmt.Sprint(err); err == nil && tc.want != "" || err != nil && got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if err != nil && (!needsPerson(err) || !errors.As(err, new(*former))) {
				t.Error("nobody is told")
			}
			if diff := cmp.Diff(tc.patches, hub.got); diff != "" {
				t.Errorf("patches (-want +got):\n%s", diff)
			}
		})
	}
}
