package members

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Delete removes the object that has this UID, and what it owns, in the background or before it (metav1.DeletePropagationForeground),
// and reports whether the member answers that it is gone: one that somebody holds,
// that ends with grace, or that waits for what it owns, stays for a while. An object that is not there is gone; one
// with another UID is a conflict.
func (m *Member) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, uid types.UID, owned metav1.DeletionPropagation) (gone bool, err error) {
	answer, err := m.own().delete(ctx, gvk, key, metav1.DeleteOptions{
		PropagationPolicy: &owned, Preconditions: &metav1.Preconditions{UID: &uid},
	})
	m.informer.Undid(gvk, key)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, m.own().explain(err, gvk)
	}
	return ended(answer, uid), nil
}

// ended reports whether the answer to a DELETE is that the object is gone: a Status, or,
// for some kinds, the object as it was. One that stays for a while says that it is
// being deleted.
func ended(answer []byte, uid types.UID) bool {
	var is metav1.PartialObjectMetadata
	if json.Unmarshal(answer, &is) != nil {
		return false
	}
	return is.APIVersion == "v1" && is.Kind == "Status" || is.UID == uid && is.DeletionTimestamp.IsZero()
}

// delete is the dynamic client's Delete, which does not return what the member
// answers.
func (s sender) delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, o metav1.DeleteOptions) ([]byte, error) {
	kind, err := s.kind(ctx, gvk)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode how to remove %s %s: %w", gvk.Kind, key, err)
	}
	path := []string{"/apis", kind.Resource.Group, kind.Resource.Version}
	if kind.Resource.Group == "" {
		path = []string{"/api", kind.Resource.Version}
	}
	if kind.Namespaced {
		path = append(path, "namespaces", key.Namespace)
	}
	result := s.member.clients.Discovery().RESTClient().Delete().AbsPath(append(path, kind.Resource.Resource, key.Name)...).
		SetHeader("Accept", runtime.ContentTypeJSON).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// Served returns the kind in a version that the member serves: as it is given where it
// serves that, or else in another one, which has the same objects. ErrNotServed says that
// it serves none.
func (m *Member) Served(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	_, err := m.own().kind(ctx, gvk)
	if !errors.Is(err, ErrNotServed) || gvk.Group == "" {
		return gvk, err
	}
	var group metav1.APIGroup
	if err := m.clients.Discovery().RESTClient().Get().AbsPath("/apis", gvk.Group).Do(ctx).Into(&group); apierrors.IsNotFound(err) {
		return gvk, fmt.Errorf("%w: %s", ErrNotServed, gvk)
	} else if err != nil {
		return gvk, fmt.Errorf("read the versions of group %s: %w", gvk.Group, err)
	}
	for _, version := range group.Versions {
		other := gvk.GroupKind().WithVersion(version.Version)
		if _, err := m.own().kind(ctx, other); !errors.Is(err, ErrNotServed) {
			return other, err
		}
	}
	return gvk, fmt.Errorf("%w: %s", ErrNotServed, gvk)
}
