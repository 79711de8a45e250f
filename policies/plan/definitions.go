package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// definitionsFirst returns the indices of the templates, those of CustomResourceDefinitions
// before all others: objects can only go where their definitions go.
func definitionsFirst(templates []*unstructured.Unstructured) []int {
	order := make([]int, 0, len(templates))
	for i, t := range templates {
		if isDefinition(t) {
			order = append(order, i)
		}
	}
	for i, t := range templates {
		if !isDefinition(t) {
			order = append(order, i)
		}
	}
	return order
}

func isDefinition(t *unstructured.Unstructured) bool {
	return t.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

// definition returns the binding of the definition of the template's kind; nil
// where there is none.
func (in *FleetInput) definition(template *unstructured.Unstructured, now *bound) workv1alpha2.Binding {
	gvk := template.GroupVersionKind()
	i := slices.IndexFunc(in.Templates, func(t *unstructured.Unstructured) bool {
		if !isDefinition(t) {
			return false
		}
		group, _, _ := unstructured.NestedString(t.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(t.Object, "spec", "names", "kind")
		return group == gvk.Group && kind == gvk.Kind
	})
	if i < 0 {
		return nil
	}
	return now.of(in.Templates[i])
}
