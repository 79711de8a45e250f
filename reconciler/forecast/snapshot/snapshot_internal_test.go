package snapshot

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestNoDigestOfWhatIsWithheld: by the digest of a template that is a Secret, or that holds text of one, its values could be guessed.
func TestNoDigestOfWhatIsWithheld(t *testing.T) {
	template := func(kind, name string, annotations map[string]any) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": name, "annotations": annotations}}
	}
	s := &Snapshot{Templates: []map[string]any{
		template("Secret", "db", nil), template("ConfigMap", "plain", nil), template("ConfigMap", "filled", map[string]any{gitopsv1alpha1.HoldsSecretsAnnotation: "yes"}),
	}}
	for name, kind := range map[string]string{"db": "Secret", "plain": "ConfigMap", "filled": "ConfigMap", "gone": "ConfigMap"} {
		b := workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: kind, Namespace: "shop", Name: name, UID: "u"}}}
		b.Name, b.Annotations = name, map[string]string{propagation.DigestAnnotation: "0123", propagation.EditionAnnotation: "4567"}
		s.Bindings.Namespaced = append(s.Bindings.Namespaced, b)
	}
	s.Withhold()
	got := map[string]int{}
	for _, b := range s.Bindings.Namespaced {
		got[b.Name] = len(b.Annotations)
	}
	if diff := cmp.Diff(map[string]int{"db": 0, "plain": 2, "filled": 0, "gone": 0}, got); diff != "" {
		t.Errorf("annotations of bindings (-want +got):\n%s", diff)
	}
}
