package placement

import (
	"maps"
	"slices"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Put writes the decision on b: its clusters and both annotations.
func (d Decision) Put(b workv1alpha2.Binding) {
	b.BindingSpec().Clusters = slices.Clone(d.Clusters)
	annotations := maps.Clone(b.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, d.Annotations())
	b.SetAnnotations(annotations)
}
