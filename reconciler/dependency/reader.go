package dependency

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// reader reads bindings as the cache has them, own writes included. It writes nothing.
type reader struct {
	hub     client.Reader
	written *writecache.Cache[workv1alpha2.Binding]
}

// binding returns the binding under key; found is false where there is none.
func (r reader) binding(ctx context.Context, key client.ObjectKey) (_ workv1alpha2.Binding, found bool, err error) {
	cached, found, err := bindings.Get(ctx, r.hub, key)
	if err != nil {
		return nil, false, err
	}
	b, found := r.written.Latest(key, cached, found)
	return b, found, nil
}

// naming returns the bindings that name ref as one that needs them.
func (r reader) naming(ctx context.Context, ref dependency.Ref) ([]workv1alpha2.Binding, error) {
	var out []workv1alpha2.Binding
	seen := map[client.ObjectKey]bool{}
	err := bindings.Each(ctx, r.hub, func(b workv1alpha2.Binding) {
		key := client.ObjectKeyFromObject(b)
		seen[key] = true
		if latest, _ := r.written.Latest(key, b, true); names(latest, ref) && !r.written.Ended(latest) {
			out = append(out, latest)
		}
	}, client.MatchingFields{byUser: ref.String()})
	for _, b := range r.written.Unseen(func(b workv1alpha2.Binding) bool { return names(b, ref) }) {
		if !seen[client.ObjectKeyFromObject(b)] {
			out = append(out, b)
		}
	}
	return out, err
}
