package rollup_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestWhatIsNotServed: a kind that a cluster does not serve, and an API that nobody answers for, say why.
func TestWhatIsNotServed(t *testing.T) {
	definition := workv1alpha2.ObjectReference{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "gadgets.example.com"}
	api := workv1alpha2.ObjectReference{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService", Name: "v1.example.com"}
	for name, tc := range map[string]struct {
		of     workv1alpha2.ObjectReference
		status string
		want   rollup.ClusterPart
	}{
		"its name is taken": {definition, `{"conditions":[{"type":"NamesAccepted","status":"False","reason":"KindConflict","message":"\"Gadget\" is already in use"},{"type":"Established","status":"False","reason":"NotAccepted","message":"not all names are accepted"}],"resourceWaiting":true}`,
			rollup.ClusterPart{Name: "a", State: rollup.Progressing, Reason: `not established: KindConflict: "Gadget" is already in use`}},
		"it is being installed": {definition, `{"conditions":[{"type":"NamesAccepted","status":"True"},{"type":"Established","status":"False","reason":"Installing","message":"the initial names have been accepted"}],"resourceWaiting":true}`,
			rollup.ClusterPart{Name: "a", State: rollup.Progressing, Reason: "not established: Installing: the initial names have been accepted"}},
		"it is just there":   {definition, `{"resourceWaiting":true}`, rollup.ClusterPart{Name: "a", State: rollup.Progressing, Reason: "not established yet"}},
		"it is served":       {definition, `{"conditions":[{"type":"Established","status":"True"}]}`, rollup.ClusterPart{Name: "a"}},
		"nobody answers":     {api, `{"conditions":[{"type":"Available","status":"False","reason":"ServiceNotFound","message":"service/x is not present"}],"resourceWaiting":true}`, rollup.ClusterPart{Name: "a", State: rollup.Progressing, Reason: "not available: ServiceNotFound: service/x is not present"}},
		"an API that serves": {api, `{"conditions":[{"type":"Available","status":"True"}]}`, rollup.ClusterPart{Name: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ClusterResourceBinding{}
			b.Spec.Resource, b.Spec.Clusters = tc.of, []workv1alpha2.TargetCluster{{Name: "a"}}
			b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", Applied: true, Health: workv1alpha2.ResourceHealthy, Status: &runtime.RawExtension{Raw: []byte(tc.status)}}}
			got := rollup.PartOf(nil, b, nil, nil)
			if diff := cmp.Diff([]rollup.ClusterPart{tc.want}, got.Clusters); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
