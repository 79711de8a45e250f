package binding

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/echo"
)

// Indexes of Works in the hub's cache.
const (
	// byID finds Works by the permanent id of their binding.
	byID = "bindingID"
	// byBinding finds Works by the key of their binding.
	byBinding = "binding"
)

// shelf is where the Works, and the clusters that they are for, are: the hub's
// cache, and what was written and is not there yet. What it returns is shared: it must
// not be changed.
type shelf struct {
	hub     client.Reader
	written *echo.Echo[*workv1alpha1.Work]
}

// register adds the indexes of Works.
func (*shelf) register(ctx context.Context, indexer client.FieldIndexer) error {
	indexes := map[string]func(*workv1alpha1.Work) []string{
		byID: func(w *workv1alpha1.Work) []string {
			if id := idOf(w); id != "" {
				return []string{id}
			}
			return nil
		},
		byBinding: func(w *workv1alpha1.Work) []string {
			if key, ok := bindingOf(w); ok {
				return []string{key.String()}
			}
			return nil
		},
	}
	for field, values := range indexes {
		extract := func(obj client.Object) []string { return values(obj.(*workv1alpha1.Work)) }
		if err := indexer.IndexField(ctx, &workv1alpha1.Work{}, field, extract); err != nil {
			return fmt.Errorf("index works by %s: %w", field, err)
		}
	}
	return nil
}

// idOf returns the permanent id of the binding that w belongs to; empty for
// Works that no binding made.
func idOf(w *workv1alpha1.Work) string {
	if id := w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]; id != "" {
		return id
	}
	return w.Labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel]
}

// bindingOf returns the key of the binding that w belongs to, and false for
// Works that no binding made.
func bindingOf(w *workv1alpha1.Work) (client.ObjectKey, bool) {
	a := w.Annotations
	if name := a[workv1alpha2.ClusterResourceBindingAnnotationKey]; name != "" {
		return client.ObjectKey{Name: name}, idOf(w) != ""
	}
	key := client.ObjectKey{Namespace: a[workv1alpha2.ResourceBindingNamespaceAnnotationKey], Name: a[workv1alpha2.ResourceBindingNameAnnotationKey]}
	return key, key.Namespace != "" && key.Name != "" && idOf(w) != ""
}

// of returns the Works of b.
func (s *shelf) of(ctx context.Context, b workv1alpha2.Binding) ([]*workv1alpha1.Work, error) {
	id := b.GetLabels()[bindings.IDLabel(b)]
	if id == "" {
		return nil, nil
	}
	return s.list(ctx, client.MatchingFields{byID: id}, func(w *workv1alpha1.Work) bool { return idOf(w) == id })
}

// left returns the Works that name a binding that is gone and are not being
// deleted yet.
func (s *shelf) left(ctx context.Context, gone client.ObjectKey) ([]*workv1alpha1.Work, error) {
	works, err := s.list(ctx, client.MatchingFields{byBinding: gone.String()}, func(w *workv1alpha1.Work) bool {
		key, ok := bindingOf(w)
		return ok && key == gone
	})
	return slices.DeleteFunc(works, s.written.Leaving), err
}

// list returns the cached Works that the index finds, in their latest version,
// and those written but not cached yet that match.
func (s *shelf) list(ctx context.Context, index client.MatchingFields, match func(*workv1alpha1.Work) bool) ([]*workv1alpha1.Work, error) {
	var list workv1alpha1.WorkList
	if err := s.hub.List(ctx, &list, index, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list works: %w", err)
	}
	out := make([]*workv1alpha1.Work, 0, len(list.Items))
	seen := make(map[client.ObjectKey]bool, len(list.Items))
	for i := range list.Items {
		key := client.ObjectKeyFromObject(&list.Items[i])
		seen[key] = true
		if w, ok := s.written.Latest(key, &list.Items[i], true); ok {
			out = append(out, w)
		}
	}
	for _, w := range s.written.Unseen(match) {
		if !seen[client.ObjectKeyFromObject(w)] {
			out = append(out, w)
		}
	}
	return out, nil
}

// find returns the Work under key, and false if there is none.
func (s *shelf) find(ctx context.Context, key client.ObjectKey) (*workv1alpha1.Work, bool, error) {
	w := &workv1alpha1.Work{}
	err := s.hub.Get(ctx, key, w, client.UnsafeDisableDeepCopy)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, false, fmt.Errorf("read work %s: %w", key, err)
	}
	latest, found := s.written.Latest(key, w, err == nil)
	return latest, found, nil
}

// cluster returns a cluster, and false if there is none of the name.
func (s *shelf) cluster(ctx context.Context, name string) (*clusterv1alpha1.Cluster, bool, error) {
	c := &clusterv1alpha1.Cluster{}
	err := s.hub.Get(ctx, client.ObjectKey{Name: name}, c, client.UnsafeDisableDeepCopy)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, false, fmt.Errorf("read cluster %s: %w", name, err)
	}
	return c, err == nil, nil
}

// meant returns the names of the clusters that a rule of one of the overrides
// picks.
func (s *shelf) meant(ctx context.Context, overrides ...policyv1alpha1.Override) (map[string]bool, error) {
	var list clusterv1alpha1.ClusterList
	if err := s.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	out := map[string]bool{}
	for i := range list.Items {
		c := &list.Items[i]
		if slices.ContainsFunc(overrides, func(o policyv1alpha1.Override) bool { return override.Means(o, c) }) {
			out[c.Name] = true
		}
	}
	return out, nil
}
