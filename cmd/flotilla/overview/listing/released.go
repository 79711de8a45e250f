package listing

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// mostReleased is how many templates are read that no policy carries: each costs a request.
const mostReleased = 20

// Released reads templates that no policy carries any more, though clusters run them. Hub must be
// set. It is not for use from several goroutines.
type Released struct {
	Hub  client.Reader
	read int
}

// Template is that of a binding, which shows whether it was edited since; nil where a policy
// carries it, and where it is not known.
func (r *Released) Template(ctx context.Context, b workv1alpha2.Binding) *unstructured.Unstructured {
	if r.read == mostReleased || !rollup.Released(b) || len(plan.Targets(plan.SpecOf(b))) == 0 {
		return nil
	}
	r.read++
	ref := b.BindingSpec().Resource
	template := &unstructured.Unstructured{}
	template.SetAPIVersion(ref.APIVersion)
	template.SetKind(ref.Kind)
	if err := r.Hub.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, template); err != nil {
		return nil
	}
	return template
}
