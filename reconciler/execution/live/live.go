// Package live finds the objects of manifests in a member, whatever its watch shows.
//
// In go a member and manifests; out come what is observed of an object, and the version of its kind that the member serves. It writes
// nothing, and does not say to whom an object belongs.
package live

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/manifest"
)

// Reader reads from a member.
type Reader interface {
	Read(gvk schema.GroupVersionKind, key types.NamespacedName) (*members.Observed, members.Presence)
	Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error)
	Served(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionKind, error)
}

// Find returns the object of a manifest, and the version of its kind that is served; nil if there
// is none. It reads an object that the watch does not have from the member itself: the
// watch may be behind. Errors are the member's.
func Find(ctx context.Context, member Reader, m *manifest.Manifest) (*members.Observed, schema.GroupVersionKind, error) {
	kind := m.GVK
	if observed, presence := member.Read(kind, m.Key); presence == members.Present {
		return observed, kind, nil
	}
	found, err := member.Get(ctx, kind, m.Key)
	if errors.Is(err, members.ErrNotServed) { // another version of the kind may be, with the same objects
		if kind, err = member.Served(ctx, kind); err == nil {
			found, err = member.Get(ctx, kind, m.Key)
		}
	}
	switch {
	case apierrors.IsNotFound(err) || errors.Is(err, members.ErrNotServed):
		return nil, kind, nil
	case err != nil:
		return nil, kind, err
	}
	return members.MetadataOf(found), kind, nil
}

// Any reports whether the member has an object of any of the manifests. Those that are none count as not there.
func Any(ctx context.Context, member Reader, manifests []manifest.Manifest) (bool, error) {
	for i := range manifests {
		if manifests[i].Err != nil {
			continue
		}
		if observed, _, err := Find(ctx, member, &manifests[i]); err != nil || observed != nil {
			return observed != nil, err
		}
	}
	return false, nil
}
