package health_test

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestARecalledRemoval: a template was removed and is back while its cluster is away, whose Work is still that of the binding before.
func TestARecalledRemoval(t *testing.T) {
	for name, tc := range map[string]struct {
		value, owner string
		want         string
	}{
		"its removal was recalled":     {workv1alpha2.WantedAgain, "", "it was there, and stays: its removal was recalled"},
		"its removal was not recalled": {"", "", "not sent yet"},
		"it is of another binding":     {workv1alpha2.WantedAgain, "other", "not sent yet"},
	} {
		t.Run(name, func(t *testing.T) {
			template := object(t, config)
			b := binding(t, template)
			b.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "new"}
			w := work(b)
			w.DeletionTimestamp, w.Finalizers = &metav1.Time{Time: midnight}, []string{"example.com/held"}
			w.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "old"}
			w.Annotations = maps.Clone(b.Annotations)
			w.Annotations[workv1alpha2.WantedAgainAnnotation] = tc.value
			w.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotationKey] = b.Namespace
			w.Annotations[workv1alpha2.ResourceBindingNameAnnotationKey] = b.Name + tc.owner
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(b, w, silentCluster("east")).Build()
			e := entryOf(template)
			got, err := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{}}).Assess(t.Context(), health.Request{
				Entries: []inventory.Entry{e}, Observed: map[inventory.ID]*unstructured.Unstructured{e.ID: template}, As: hub,
			})
			if err != nil {
				t.Fatal(err)
			}
			if reason, want := got.Verdicts[0].Reason, "east: unreachable since 2026-01-01 00:00 UTC; last heard: "+tc.want; reason != want {
				t.Errorf("%q, want %q", reason, want)
			}
		})
	}
}
