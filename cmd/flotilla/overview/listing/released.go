package listing

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// mostReleased is how many templates without a policy are read: each costs a request.
const mostReleased = 20

// Released reads templates that no policy propagates any more although clusters run them. Hub must be
// set. It is not safe for concurrent use.
type Released struct {
	Hub  client.Reader
	read int
}

// Template returns the template of a binding, to see whether it was changed since; nil if a policy
// propagates it, or if it cannot be read.
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
