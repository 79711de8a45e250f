package rollup

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// nameless stands where the name of an object was that text of a Secret is in.
const nameless = "***"

// masked returns a part without the name of its template, where text of a Secret is in that: a rollup is shown where
// more people read than may see the object.
func masked(part Part, template *unstructured.Unstructured) Part {
	if template == nil || template.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] != gitopsv1alpha1.HoldsInName {
		return part
	}
	hide := func(text string) string { return strings.ReplaceAll(text, template.GetName(), nameless) }
	part.Object, part.Reason, part.Fault = hide(part.Object), hide(part.Reason), hide(part.Fault)
	for _, clusters := range [][]ClusterPart{part.Clusters, part.Former} {
		for n := range clusters {
			clusters[n].Reason, clusters[n].Note = hide(clusters[n].Reason), hide(clusters[n].Note)
		}
	}
	return part
}
