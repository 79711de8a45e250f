package rollup

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// nameless replaces the name of an object that contains text of a Secret.
const nameless = "***"

// masked returns a part without the name of its template where that contains text
// of a Secret: more people can read a rollup than the object.
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
