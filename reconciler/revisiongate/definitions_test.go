package revisiongate

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// While only namespaces and kinds of a revision are written, they wait for the rest, and nothing else does. That goes on after a
// restart, as the status says so, and until all of the revision counts.
func TestDefinitionsWaitForTheRestOfARevision(t *testing.T) {
	labels := inventory.OwnerLabels(shop)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fresh", Labels: labels}}
	kind := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
	kind.SetLabels(labels)
	defining := stating()
	defining.Status.Conditions[0].Reason = ReasonDefining

	var tracker *Tracker
	ended := 0
	for _, step := range []struct {
		name                              string
		do                                func()
		namespace, kind, template, counts bool
		ended                             int
	}{
		{name: "it begins to define", do: func() { tracker.Begin(shop, Definitions) }, namespace: true, kind: true, counts: true},
		{name: "the status says so", do: func() { tracker.observe(t.Context(), shop, defining, false) }, namespace: true, kind: true, counts: true},
		{name: "another replica takes over", do: func() {
			tracker = New(nil, fakeTemplates{})
			tracker.Listen(Listener{Ended: func(client.ObjectKey) { ended++ }})
			tracker.hear(nil, rule("one", "1"), true)
			tracker.observe(t.Context(), shop, defining, false)
		}, namespace: true, kind: true, counts: true},
		{name: "it begins to switch all", do: func() { tracker.Begin(shop, All) }, namespace: true, kind: true, template: true, counts: true},
		{name: "the status says so, too", do: func() { tracker.observe(t.Context(), shop, stating(), false) }, namespace: true, kind: true, template: true, counts: true},
		{name: "an override is written", do: func() { tracker.hear(rule("one", "1"), rule("one", "2"), false) }, namespace: true, kind: true, template: true, counts: true},
		{name: "it is switched", do: func() { tracker.End(t.Context(), shop, nil) }, namespace: true, kind: true, template: true, counts: true},
		{name: "the status says nothing more", do: func() { tracker.observe(t.Context(), shop, &kustomizev1.Kustomization{}, false) }, ended: 1},
		{name: "it begins to define again", do: func() { tracker.observe(t.Context(), shop, defining, false) }, namespace: true, kind: true, ended: 1},
		{name: "and is suspended", do: func() {
			suspended := defining.DeepCopy()
			suspended.Spec.Suspend = true
			tracker.observe(t.Context(), shop, suspended, false)
		}, ended: 3}, // its switch, and that it is suspended
	} {
		if tracker == nil {
			tracker = New(nil, fakeTemplates{})
			tracker.hear(nil, rule("one", "1"), true)
		}
		step.do()
		for what, is := range map[string]struct {
			obj  inventory.Labelled
			want bool
		}{"a namespace": {namespace, step.namespace}, "a kind": {kind, step.kind}, "a template": {web(), step.template}} {
			if _, got := tracker.Switching(is.obj); got != is.want {
				t.Errorf("%s: %s is held: %t", step.name, what, got)
			}
		}
		want := []string{"one 2"}
		if step.counts {
			want = []string{"one 1"}
		}
		if diff := cmp.Diff(want, counting(tracker)); diff != "" {
			t.Errorf("%s: what counts (-want +got):\n%s", step.name, diff)
		}
		if ended != step.ended {
			t.Errorf("%s: it ended %d times, want %d", step.name, ended, step.ended)
		}
	}
}
