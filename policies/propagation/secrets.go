package propagation

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// RecordSecrets records on a binding whether its policy contains text of a
// Secret, as the binding's placement repeats what the policy has.
func RecordSecrets(b metav1.Object, p policyv1alpha1.Policy) {
	annotations := maps.Clone(b.GetAnnotations())
	if delete(annotations, gitopsv1alpha1.HoldsSecretsAnnotation); p.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] != "" {
		annotations = mapOf(annotations)
		annotations[gitopsv1alpha1.HoldsSecretsAnnotation] = gitopsv1alpha1.HoldsInFields
	}
	b.SetAnnotations(annotations)
}

// Redact returns the clusters that a policy or a binding names, without their
// names if it contains text of a Secret. Meant is kept, as whether a name is
// mistyped counts.
func Redact(of metav1.Object, strangers []Stranger) []Stranger {
	if of.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] == "" {
		return strangers
	}
	out := make([]Stranger, len(strangers))
	for n := range strangers {
		out[n].Meant = strangers[n].Meant
	}
	return out
}

// counted returns a text with the number of clusters whose names may not be
// shown.
func counted(n int) string {
	if n == 1 {
		return "1 that does not exist, and is not told, as text of a Secret is in the policy"
	}
	return fmt.Sprintf("%d that do not exist, and are not told, as text of a Secret is in the policy", n)
}
