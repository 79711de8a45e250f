package revisiongate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Templates reads templates from the watches that loops read from.
type Templates interface {
	State(gvk schema.GroupVersionKind) templatestore.State
	Get(ctx context.Context, key templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error)
}

// Version is a write of an object.
type Version struct {
	schema.GroupVersionKind
	client.ObjectKey
	UID types.UID
	// ResourceVersion is that of the write; empty where it was deleted.
	ResourceVersion string
	// Gone says that it was deleted.
	Gone bool
}

// Unseen returns those of the versions that loops have not seen yet. Kinds that no policy carries need
// not be seen.
func (t *Tracker) Unseen(ctx context.Context, versions []Version) ([]Version, error) {
	var out []Version
	for _, v := range versions {
		seen, err := false, error(nil)
		if isOverride(v) {
			t.mu.RLock()
			seen = t.overrides.seen(v)
			t.mu.RUnlock()
		} else {
			seen, err = t.watches.see(ctx, v)
		}
		if err != nil {
			return nil, err
		}
		if !seen {
			out = append(out, v)
		}
	}
	return out, nil
}

func isOverride(v Version) bool {
	return v.Group == policyv1alpha1.GroupVersion.Group && (v.Kind == policyv1alpha1.ResourceKindOverridePolicy || v.Kind == policyv1alpha1.ResourceKindClusterOverridePolicy)
}

// watches are the caches from which loops read policies and templates.
type watches struct {
	// hub reads from a cache.
	hub       client.Reader
	templates Templates
}

// see reports whether a version has arrived.
func (w watches) see(ctx context.Context, v Version) (bool, error) {
	if v.Group == policyv1alpha1.GroupVersion.Group {
		switch v.Kind {
		case policyv1alpha1.ResourceKindPropagationPolicy:
			return w.cached(ctx, v, &policyv1alpha1.PropagationPolicy{})
		case policyv1alpha1.ResourceKindClusterPropagationPolicy:
			return w.cached(ctx, v, &policyv1alpha1.ClusterPropagationPolicy{})
		}
	}
	if v.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) { // no policy carries it, but it has a loop of its own
		return w.cached(ctx, v, &corev1.Namespace{})
	}
	if w.templates.State(v.GroupVersionKind) != templatestore.Synced {
		return true, nil
	}
	obj, presence, err := w.templates.Get(ctx, templatestore.Key{GroupVersionKind: v.GroupVersionKind, Namespace: v.Namespace, Name: v.Name})
	if err != nil || presence != templatestore.Present {
		return v.Gone || presence == templatestore.Unknown, err
	}
	return v.seenAs(obj), nil
}

// cached reports whether the cache has a version of a kind that it watches.
func (w watches) cached(ctx context.Context, v Version, into client.Object) (bool, error) {
	err := w.hub.Get(ctx, v.ObjectKey, into, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return v.Gone, nil
	case err != nil:
		return false, fmt.Errorf("look whether %s %s is seen: %w", v.Kind, v.ObjectKey, err)
	default:
		return v.seenAs(into), nil
	}
}

// seenAs reports whether what is seen is the version, or a later one.
func (v Version) seenAs(obj client.Object) bool {
	if v.Gone {
		return obj.GetUID() != v.UID || obj.GetDeletionTimestamp() != nil
	}
	return !writecache.Older(obj.GetResourceVersion(), v.ResourceVersion)
}
