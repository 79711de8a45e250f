package propagation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// TestStrangersOfAPolicyThatHoldsSecretsAreCounted checks that unknown clusters
// are counted and not named where the policy contains text of a Secret, in the
// texts for the policy and for a binding under it.
func TestStrangersOfAPolicyThatHoldsSecretsAreCounted(t *testing.T) {
	fleet := []string{"east", "west"}
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}
	binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"other": "stays"}}}
	texts := func(names ...string) []string {
		return []string{Naming(Redact(policy, StrangersAmong(names, fleet))), Naming(Redact(binding, StrangersAmong(names, fleet)))}
	}
	twice := func(text string) []string { return []string{text, text} }
	if diff := cmp.Diff(twice("clusterNames names wst, which does not exist (did you mean west?)"), texts("east", "wst")); diff != "" {
		t.Errorf("of a policy that holds none (-want +got):\n%s", diff)
	}

	policy.Annotations = map[string]string{gitopsv1alpha1.HoldsSecretsAnnotation: gitopsv1alpha1.HoldsInFields}
	RecordSecrets(binding, policy)
	if diff := cmp.Diff(twice("clusterNames names 1 that does not exist, and is not told, as text of a Secret is in the policy"), texts("east", "wst")); diff != "" {
		t.Errorf("of one (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(twice("clusterNames names 7 that do not exist, and are not told, as text of a Secret is in the policy"), texts("canary", "b", "c", "d", "e", "f", "g")); diff != "" {
		t.Errorf("of several (-want +got):\n%s", diff)
	}
	if redacted := Redact(policy, StrangersAmong([]string{"wst"}, fleet)); redacted[0].Meant != "west" {
		t.Error("a mistake is taken for a cluster that may yet join")
	}
	remarks := strings.Join(Remarks(policy, []string{"canary"}, []string{"eastt"}, fleet), "\n")
	want := "clusterNames names 1 that does not exist, and is not told, as text of a Secret is in the policy\n" +
		"exclude names 1 that does not exist, and is not told, as text of a Secret is in the policy"
	if diff := cmp.Diff(want, remarks); diff != "" {
		t.Errorf("remarks (-want +got):\n%s", diff)
	}

	policy.Annotations = nil
	RecordSecrets(binding, policy)
	if diff := cmp.Diff(map[string]string{"other": "stays"}, binding.Annotations); diff != "" {
		t.Errorf("annotations once the policy holds none (-want +got):\n%s", diff)
	}
}
