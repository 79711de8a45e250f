package situation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestAnEditOnItsWay: for some seconds after an edit the binding still reports clusters as healthy that do not apply it.
func TestAnEditOnItsWay(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}}}
	for name, tc := range map[string]struct {
		generation int64
		edited     time.Duration // ago
		ready      [3]int        // of templates, in east, in west
		problems   []situation.Problem
	}{
		"both tell of it": {generation: 2, ready: [3]int{1, 1, 1}},
		"one does not yet": {generation: 3, edited: 5 * time.Second, ready: [3]int{0, 1, 0}, problems: []situation.Problem{{
			State: situation.Progressing, Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Clusters: []string{"west"},
			Message: "latest version not seen yet", Next: "flotilla events --for Deployment/web -n shop -C west",
		}}},
		"the edit was long ago": {generation: 3, edited: time.Hour, ready: [3]int{1, 1, 1}}, // an edit that was taken back at once
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			for _, cluster := range []string{"east", "west"} {
				c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
				c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ClusterReady"}}
				s.Cluster(c, time.Time{})
			}
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", Annotations: placement.Decision{
				AppliedPlacement: placement.AppliedPlacement(nil), Record: placement.Record{Reason: workv1alpha2.BindingReasonSuccess},
			}.Annotations()}}
			propagation.ClaimOf(policy).Set(b)
			b.Spec = workv1alpha2.ResourceBindingSpec{
				Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
				Replicas: 1, Clusters: []workv1alpha2.TargetCluster{{Name: "east", Replicas: 1}, {Name: "west", Replicas: 1}},
			}
			for cluster, seen := range map[string]string{"east": "3", "west": "2"} {
				b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{
					ClusterName: cluster, Applied: true, Health: workv1alpha2.ResourceHealthy,
					Status: &runtime.RawExtension{Raw: []byte(`{"replicas":1,"readyReplicas":1,"updatedReplicas":1,"availableReplicas":1,"resourceTemplateGeneration":` + seen + `}`)},
				})
			}
			s.Binding(b, nil)
			edited := metav1.NewTime(now.Add(-tc.edited))
			web := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web", Generation: tc.generation,
				ManagedFields: []metav1.ManagedFieldsEntry{{Time: &edited}, {Subresource: "status", Time: &metav1.Time{Time: now}}},
			}}
			s.Workload(web)
			f := s.Fleet()
			got := [3]int{f.Templates.Ready, f.Clusters[0].Templates.Ready, f.Clusters[1].Templates.Ready}
			if got != tc.ready {
				t.Errorf("ready %v, want %v", got, tc.ready)
			}
			if diff := cmp.Diff(tc.problems, f.Problems, cmp.Transformer("none", func(p []situation.Problem) map[string]situation.Problem {
				out := map[string]situation.Problem{}
				for _, one := range p {
					out[one.Object()] = one
				}
				return out
			})); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
