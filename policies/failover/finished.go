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
	if !finished.Ends(kindOf(b)) {
		return nil
	}
	var out []string
	for _, t := range b.BindingSpec().Clusters {
		if Ended(b, t.Name) != "" {
			out = append(out, t.Name)
		}
	}
	return out
}

// Ended returns how a template has ended in a cluster, in the word of its kind
// such as "Complete", according to the last report; empty where it has not.
func Ended(b workv1alpha2.Binding, cluster string) string {
	kind := kindOf(b)
	if !finished.Ends(kind) {
		return ""
	}
	return finished.How(kind, statusIn(b, cluster))
}

func kindOf(b workv1alpha2.Binding) schema.GroupKind {
	of := &b.BindingSpec().Resource
	return schema.FromAPIVersionAndKind(of.APIVersion, of.Kind).GroupKind()
}
