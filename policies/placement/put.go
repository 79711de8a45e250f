package placement

import (
	"maps"
	"slices"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Put writes the decision on b: its clusters, those that it leaves, and both
// annotations.
func (d Decision) Put(b workv1alpha2.Binding) {
	b.BindingSpec().Clusters = slices.Clone(d.Clusters)
	b.BindingSpec().GracefulEvictionTasks = slices.Clone(d.Evictions)
	annotations := maps.Clone(b.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, d.Annotations())
	b.SetAnnotations(annotations)
}
