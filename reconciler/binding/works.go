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
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// workLister lists Works, and reads their Clusters: from the hub's cache,
// and from own writes that the cache does not have yet. What it returns is the cache's own: do not
// change it.
type workLister struct {
	hub     client.Reader
	written *writecache.Cache[*workv1alpha1.Work]
}

// of returns the Works of b.
func (s *workLister) of(ctx context.Context, b workv1alpha2.Binding) ([]*workv1alpha1.Work, error) {
	id := b.GetLabels()[bindings.IDLabel(b)]
	if id == "" {
		return nil, nil
	}
	return s.list(ctx, client.MatchingFields{bindings.WorksByID: id}, func(w *workv1alpha1.Work) bool { return bindings.IDOf(w) == id })
}

// left returns the Works that name a binding that is gone, if they are not being
// deleted yet, or hold a volume claim whose template may be gone by now.
func (s *workLister) left(ctx context.Context, gone client.ObjectKey) ([]*workv1alpha1.Work, error) {
	return s.naming(ctx, gone, func(w *workv1alpha1.Work) bool {
		_, claim := volumes.Carried(w)
		return !s.written.Leaving(w) || claim && !volumes.Released(w)
	})
}

// released returns the Works that name a binding, are being deleted, and may take a claim along as its template was gone.
func (s *workLister) released(ctx context.Context, binding client.ObjectKey) ([]*workv1alpha1.Work, error) {
	return s.naming(ctx, binding, func(w *workv1alpha1.Work) bool {
		return s.written.Leaving(w) && w.Annotations[workv1alpha2.TemplateGoneAnnotation] != ""
	})
}

// leaving returns the Works that name a binding and are being deleted.
func (s *workLister) leaving(ctx context.Context, binding client.ObjectKey) ([]*workv1alpha1.Work, error) {
	return s.naming(ctx, binding, func(w *workv1alpha1.Work) bool { return w.DeletionTimestamp != nil })
}

// naming returns those of the Works that name a binding.
func (s *workLister) naming(ctx context.Context, binding client.ObjectKey, which func(*workv1alpha1.Work) bool) ([]*workv1alpha1.Work, error) {
	works, err := s.list(ctx, client.MatchingFields{bindings.WorksByOwner: binding.String()}, func(w *workv1alpha1.Work) bool {
		key, ok := bindings.OwnerOf(w)
		return ok && key == binding
	})
	return slices.DeleteFunc(works, func(w *workv1alpha1.Work) bool { return !which(w) }), err
}

// list returns the cached Works that the index finds, in their latest version,
// and those written but not cached yet that match.
func (s *workLister) list(ctx context.Context, index client.MatchingFields, match func(*workv1alpha1.Work) bool) ([]*workv1alpha1.Work, error) {
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
func (s *workLister) find(ctx context.Context, key client.ObjectKey) (*workv1alpha1.Work, bool, error) {
	w := &workv1alpha1.Work{}
	err := s.hub.Get(ctx, key, w, client.UnsafeDisableDeepCopy)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, false, fmt.Errorf("read work %s: %w", key, err)
	}
	latest, found := s.written.Latest(key, w, err == nil)
	return latest, found, nil
}

// cluster returns a cluster, and false if there is none of the name.
func (s *workLister) cluster(ctx context.Context, name string) (*clusterv1alpha1.Cluster, bool, error) {
	c := &clusterv1alpha1.Cluster{}
	err := s.hub.Get(ctx, client.ObjectKey{Name: name}, c, client.UnsafeDisableDeepCopy)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, false, fmt.Errorf("read cluster %s: %w", name, err)
	}
	return c, err == nil, nil
}

// meant returns the names of the clusters that a rule of one of the overrides
// selects.
func (s *workLister) meant(ctx context.Context, overrides ...policyv1alpha1.Override) (map[string]bool, error) {
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
