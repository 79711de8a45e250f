package drain

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/volumes"
)

// HasData reports whether a row needs its template to say what becomes of its data: it leaves, and may have volume claims.
func (r *Row) HasData() bool {
	return r.leaving() && volumes.Concern(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind())
}

// Holds adds what becomes of the data of a template in a cluster that it leaves. Of what runs as a whole in others
// already these have their own. there are the claims that clusters are known to have.
func (r *Row) Holds(template *unstructured.Unstructured, cluster string, there volumes.Found) {
	switch {
	case !r.leaving():
	case r.RunsOn:
		r.Data = volumes.Stay(template, []string{cluster})
	default:
		to := make([]string, len(r.To))
		for i := range r.To {
			to[i] = r.To[i].Name
		}
		r.Data = volumes.LeftBehind(template, []string{cluster}, there.In(to))
	}
}

// leaving reports whether a template leaves the cluster, is to, or has.
func (r *Row) leaving() bool { return r.State == Leaves || r.State == Waits || r.State == Left }
