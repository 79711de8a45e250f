package propagation

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// RecordSecrets records on a binding whether text of a Secret is in what its policy says, which its placement repeats.
func RecordSecrets(b metav1.Object, p policyv1alpha1.Policy) {
	annotations := maps.Clone(b.GetAnnotations())
	if delete(annotations, gitopsv1alpha1.HoldsSecretsAnnotation); p.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] != "" {
		annotations = mapOf(annotations)
		annotations[gitopsv1alpha1.HoldsSecretsAnnotation] = gitopsv1alpha1.HoldsInFields
	}
	b.SetAnnotations(annotations)
}

// Redact returns the clusters that a policy or a binding names as they may be shown: without their names where it
// contains text of a Secret. What was meant stays, for those who judge by it.
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

// counted says how many clusters there are whose names may not be shown.
func counted(n int) string {
	if n == 1 {
		return "1 that does not exist, and is not told, as text of a Secret is in the policy"
	}
	return fmt.Sprintf("%d that do not exist, and are not told, as text of a Secret is in the policy", n)
}
