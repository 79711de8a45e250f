package situation_test

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestWhatACommitWaitsForIsNotReady: what keeps the status of a commit from success is a problem here, too, if it came
// from Git.
func TestWhatACommitWaitsForIsNotReady(t *testing.T) {
	owner := client.ObjectKey{Namespace: "team", Name: "web"}
	released := bindingOf("web")
	released.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceHealthy}}
	const stranger = "clusterNames names esat, which does not exist (did you mean east?)"
	const runsOn = "no policy carries it: what runs in clusters runs on, and its edits stay on the control plane"
	for name, tc := range map[string]struct {
		committed       bool
		clusters        []string
		released        bool
		problems, notes []string
	}{
		"a stranger in a policy of Git":          {committed: true, clusters: []string{"east", "west", "esat"}, problems: []string{stranger}},
		"one by hand":                            {clusters: []string{"east", "west", "esat"}, notes: []string{stranger}},
		"one like none, and others exist":        {committed: true, clusters: []string{"east", "overseas"}, notes: []string{"clusterNames names overseas, which does not exist"}},
		"a workload of Git without its policy":   {committed: true, released: true, problems: []string{runsOn}},
		"a workload by hand, without its policy": {released: true, notes: []string{runsOn}},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			s.Cluster(member("east"), time.Time{})
			s.Cluster(member("west"), time.Time{})
			if tc.committed {
				ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name}}
				ks.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ReconciliationSucceeded"}}
				ks.Status.Inventory = inventory.Record([]inventory.Entry{{ID: inventory.ID{Namespace: "shop", Name: "web", GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}}, Version: "v1"}})
				s.Kustomization(ks)
			}
			if tc.released {
				s.Binding(released, nil)
			}
			if len(tc.clusters) > 0 {
				p := carrying("all", 1, tc.clusters...)
				if tc.committed {
					p.Labels = inventory.OwnerLabels(owner)
				}
				s.Policy(p)
			}
			fleet := s.Fleet()
			var problems, notes []string
			for _, p := range fleet.Problems {
				problems = append(problems, p.Message)
			}
			for _, n := range fleet.Notes {
				notes = append(notes, n.Message)
			}
			if diff := cmp.Diff(tc.problems, problems) + cmp.Diff(tc.notes, notes); diff != "" {
				t.Errorf("problems and notes (-want +got):\n%s", diff)
			}
			if fleet.Ready != (len(tc.problems) == 0) {
				t.Errorf("ready: %v", fleet.Ready)
			}
		})
	}
}
