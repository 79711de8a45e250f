package promotion

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// returningAnnotation marks the binding of a template that stays while its object is being
// given back. The value names the policy that is being undone: once that is gone, nothing
// else shows it.
const returningAnnotation = "promotion.flotilla.io/returning"

// returning is the value of the annotation.
func (u *undo) returning() string { return u.Cluster + " " + propagation.Title(u.policy) }

// annotate marks the binding of a template that stays as one that is to be deleted.
func (u *undo) annotate(ctx context.Context, g given) error {
	binding, err := bindingOf(ctx, u.Hub, g.Object)
	if binding == nil || err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": binding.GetUID(), "annotations": map[string]string{returningAnnotation: u.returning()},
	}})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(u.Hub.Patch(ctx, binding, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(manager)))
}

// resume finds what is left to be given back if the policy is already gone.
func (u *undo) resume(ctx context.Context, of Object) error {
	u.gone = true
	title := propagation.Title(u.policy)
	var list client.ObjectList = &workv1alpha2.ResourceBindingList{}
	if of.Namespace == "" {
		list = &workv1alpha2.ClusterResourceBindingList{}
	}
	if err := u.Hub.List(ctx, list, client.InNamespace(of.Namespace)); err != nil {
		return fmt.Errorf("see what is left of %s: %w", title, err)
	}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		binding, ok := item.(workv1alpha2.Binding)
		if !ok || binding.GetAnnotations()[returningAnnotation] != u.returning() {
			return nil
		}
		ref := binding.BindingSpec().Resource
		g := given{Object: Object{schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name}, kept: true}
		u.given = append(u.given, g)
		return nil
	})
	if err == nil && len(u.given) == 0 {
		err = fmt.Errorf("there is no %s, by which %s would have been promoted: --policy-name names another", title, of)
	}
	return err
}

// unbind deletes the binding of a template that stays, once no policy propagates it. That
// releases the object in the member.
func (u *undo) unbind(ctx context.Context, g given) error {
	late := fmt.Sprintf("%s is not known yet to be without a policy: try again", g.Object)
	return u.await(ctx, late, func(ctx context.Context) (bool, error) {
		template := &unstructured.Unstructured{}
		template.SetGroupVersionKind(g.GroupVersionKind)
		if err := u.Hub.Get(ctx, g.key(), template); err != nil {
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}
		binding, err := bindingOf(ctx, u.Hub, g.Object)
		if binding == nil || err != nil {
			return err == nil, err
		}
		for _, obj := range []client.Object{template, binding} {
			ref, claimed := propagation.Claimed(obj)
			switch {
			case !claimed:
			case ref.Namespace == u.policy.GetNamespace() && ref.Name == u.policy.GetName():
				return false, nil
			default:
				return false, fmt.Errorf("%s is carried by the policy %s now: it stays the fleet's", g.Object, ref)
			}
		}
		err = u.Hub.Delete(ctx, binding, client.Preconditions{UID: ptr.To(binding.GetUID())})
		return err == nil, client.IgnoreNotFound(err)
	})
}
