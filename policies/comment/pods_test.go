package comment_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/comment"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/symptom"
)

// TestWhatPodsSay: a registry's words reach the comment by way of a Work. They mention nobody and link to nothing there, and have no
// credentials.
func TestWhatPodsSay(t *testing.T) {
	podSymptom := symptom.FromEvent("ErrImagePull", "GET https://bob:hunter2@reg.example/v2?sig=hunter2: `x` @all |\n# ![y](https://evil.example)")
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-eu", Name: "web", Generation: 1}}
	work.Status.Conditions = []metav1.Condition{
		{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: 1},
		{Type: workv1alpha1.WorkPodsReady, Status: metav1.ConditionFalse, Reason: podSymptom.Reason, Message: podSymptom.Text, ObservedGeneration: 1},
	}
	work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: workv1alpha2.ResourceUnhealthy, Status: &runtime.RawExtension{Raw: []byte(`{"replicas":2}`)}}}
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web"}}}
	b := &workv1alpha2.ResourceBinding{}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "eu", Replicas: 2}}
	b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue}}
	parts := []rollup.Part{rollup.PartOf(template, b, []*workv1alpha1.Work{work}, nil)}
	got := comment.Of(reportOf(share("web", rollup.StatePending, rollup.Revision(parts).Description, rollup.Places(parts)...)))
	const cell = "| `eu` | 🔄 rolls out | `web: waits for Deployment shop/web 0/2: ErrImagePull: GET https://reg.example/v2: 'x' @all ¦ # ![y](https://evil.example)` |\n"
	if !strings.Contains(got, cell) || shape(got) != shape(comment.Of(reportOf(share("web", rollup.StatePending, "x", rollup.Place{Cluster: "eu", State: rollup.Progressing, Reason: "x"})))) {
		t.Errorf("want %s in\n%s", cell, got)
	}
}
