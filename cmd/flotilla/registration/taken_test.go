package registration

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// TestWhatIsLeftOfAClusterThatIsAnothers: nobody is told to delete what another control
// plane may run by now.
func TestWhatIsLeftOfAClusterThatIsAnothers(t *testing.T) {
	space := workv1alpha2.ExecutionNamespace("edge")
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "one", Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer}}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"theirs"}}`),
	}}}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(work).Build()
	said := &strings.Builder{}
	d := &departure{name: "edge", hub: hub, out: said}
	edge := &clusterv1alpha1.Cluster{}
	for _, reason := range []string{clusterv1alpha1.ClusterClaimedReason, clusterv1alpha1.ClusterStatusUnknownReason} {
		edge.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: reason}}
		if err := d.look(t.Context(), edge); err != nil {
			t.Fatal(err)
		}
	}
	work.Finalizers = nil
	if err := hub.Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	if err := d.look(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"what the fleet ran in cluster edge stays there: the cluster is another control plane's, which may have taken it over"}
	if diff := cmp.Diff(want, d.leftovers(t.Context(), nil)); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}
