package overview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// TestKeptElsewhere tells a copy that waits for its replacement from one that is
// being removed.
func TestKeptElsewhere(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{
		Clusters:              []workv1alpha2.TargetCluster{{Name: "west"}},
		GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "east", Producer: workv1alpha2.EvictionProducerScheduler, ClustersBeforeFailover: []string{"east"}}},
	}}
	var works []*workv1alpha1.Work
	for _, cluster := range []string{"east", "north", "west"} {
		works = append(works, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: "web"}})
	}
	got := map[string]string{}
	for _, d := range deliveriesOf(&unstructured.Unstructured{Object: map[string]any{}}, b, works, nil) {
		got[d.Cluster] = d.Message
	}
	want := map[string]string{"east": "kept until west is healthy", "north": "it is being taken out of this cluster", "west": "not applied yet"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
