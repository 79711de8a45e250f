package overview

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

// mostOwners is how many owners are followed: a Pod has at most two, and owners could form a
// circle.
const mostOwners = 8

// climb follows the owners of a member's object up to the one that the fleet applied, and returns
// its template. It returns nil, and adds a note, if that is gone.
func (t *tracer) climb(ctx context.Context, obj *unstructured.Unstructured, cluster string) (*unstructured.Unstructured, error) {
	for range mostOwners {
		if w, ok := workOf(obj, cluster); ok {
			return t.fromWork(ctx, obj, w)
		}
		owner := metav1.GetControllerOf(obj)
		if owner == nil {
			break
		}
		above, err := t.owner(ctx, cluster, obj.GetNamespace(), owner)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("%s has an owner that is gone, %s %s: nobody knows where it comes from", objectOf(obj, cluster), owner.Kind, owner.Name)
		}
		if err != nil {
			return nil, err
		}
		t.out.Owners = append(t.out.Owners, objectOf(above, cluster))
		obj = above
	}
	return nil, fmt.Errorf("%s does not come from the fleet: neither it nor an owner carries %s", t.out.Object, workv1alpha2.ManagedByKarmadaLabel)
}

// workOf returns the Work that applied a member's object, according to the object's own
// annotations.
func workOf(obj *unstructured.Unstructured, cluster string) (client.ObjectKey, bool) {
	a := obj.GetAnnotations()
	key := client.ObjectKey{Namespace: a[workv1alpha2.WorkNamespaceAnnotation], Name: a[workv1alpha2.WorkNameAnnotation]}
	ours := obj.GetLabels()[workv1alpha2.ManagedByKarmadaLabel] == workv1alpha2.ManagedByKarmadaLabelValue
	return key, ours && key.Name != "" && key.Namespace == workv1alpha2.ExecutionNamespace(cluster)
}

func (t *tracer) owner(ctx context.Context, cluster, namespace string, ref *metav1.OwnerReference) (*unstructured.Unstructured, error) {
	factory := t.flags.Server(cluster, fleet.Timeout)
	mapper, err := factory.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	member, err := memberClient(t.flags, cluster)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	return member.Resource(mapping.Resource).Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
}

// fromWork returns the template of an object that a Work applied in a member.
func (t *tracer) fromWork(ctx context.Context, obj *unstructured.Unstructured, key client.ObjectKey) (*unstructured.Unstructured, error) {
	var w workv1alpha1.Work
	err := t.hub.Get(ctx, key, &w)
	switch {
	case apierrors.IsNotFound(err):
		t.note("It says that Work %s put it there, and there is no such Work: the cluster will be cleaned, or belongs to another fleet.", key)
		return t.templateOrNote(t.get(ctx, obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName()))
	case apierrors.IsForbidden(err):
		t.note("You may not read Work %s, which put it there: its template is taken to be the object of the same name.", key)
		return t.templateOrNote(t.get(ctx, obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName()))
	case err != nil:
		return nil, err
	}
	return t.templateOfWork(ctx, &w)
}
