package plan_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// TestSpoofedMarks: what a template says by the labels and annotations that tell
// whose an object in a member is, no manifest says.
func TestSpoofedMarks(t *testing.T) {
	manifestOf := func(in plan.WorksInput) (labels, annotations map[string]string) {
		plans, err := plan.Works(in)
		if err != nil {
			t.Fatal(err)
		}
		manifest := plans[0].Work.Spec.Workload.Manifests[0]
		obj := object(t, string(manifest.Raw))
		return obj.GetLabels(), obj.GetAnnotations()
	}
	honest, spoofed := input(t), input(t)
	labels := map[string]string{}
	for _, key := range []string{
		workv1alpha2.ManagedByKarmadaLabel, workv1alpha2.WorkPermanentIDLabel,
		workv1alpha2.ResourceBindingPermanentIDLabel, workv1alpha2.ClusterResourceBindingPermanentIDLabel,
	} {
		labels[key] = "spoofed"
	}
	annotations := maps.Clone(spoofed.Template.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	for _, key := range []string{
		workv1alpha2.WorkNamespaceAnnotation, workv1alpha2.WorkNameAnnotation, workv1alpha2.HubAnnotation,
		workv1alpha2.ResourceBindingNamespaceAnnotationKey, workv1alpha2.ResourceBindingNameAnnotationKey,
		workv1alpha2.ClusterResourceBindingAnnotationKey, workv1alpha2.PullSecretsAnnotation,
		workv1alpha2.ResourceTemplateUIDAnnotation, workv1alpha2.ResourceTemplateGenerationAnnotationKey,
		workv1alpha2.ManagedAnnotation, workv1alpha2.ManagedLabels,
	} {
		annotations[key] = "spoofed"
	}
	spoofed.Template.SetLabels(labels)
	spoofed.Template.SetAnnotations(annotations)
	wantLabels, wantAnnotations := manifestOf(honest)
	gotLabels, gotAnnotations := manifestOf(spoofed)
	if diff := cmp.Diff(wantLabels, gotLabels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantAnnotations, gotAnnotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}
