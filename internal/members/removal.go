package members

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Delete removes the object that has this UID, and what it owns in the background,
// and says whether the member answers that it is gone: one that somebody holds, or
// that ends with grace, stays for a while. An object that is not there is gone; one
// with another UID is a conflict.
func (m *Member) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, uid types.UID) (gone bool, err error) {
	answer, err := m.own().delete(ctx, gvk, key, metav1.DeleteOptions{
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground), Preconditions: &metav1.Preconditions{UID: &uid},
	})
	m.sight.Undid(gvk, key)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, m.own().explain(err, gvk)
	}
	return ended(answer, uid), nil
}

// ended says whether the answer to a DELETE is that the object is gone: a Status, or,
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
