package failover

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/finished"
)

// Finished returns the clusters of its placement in which a template has ended,
// according to their last reports; nil for none. It is not moved away from these,
// as it would run again elsewhere.
func Finished(b workv1alpha2.Binding) []string {
	spec := b.BindingSpec()
	kind := schema.FromAPIVersionAndKind(spec.Resource.APIVersion, spec.Resource.Kind).GroupKind()
	if !finished.Ends(kind) {
		return nil
	}
	var out []string
	for _, t := range spec.Clusters {
		if finished.Is(kind, statusIn(b, t.Name)) {
			out = append(out, t.Name)
		}
	}
	return out
}
