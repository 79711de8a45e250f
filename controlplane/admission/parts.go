package admission

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// part notes who changes a part of a template by a sub-resource of it, as its replicas
// by scale. What is written there is no template: nothing that is noted on it would
// stay. Who may write the whole of it is its author from then on, as if he had. Who
// may write no more than replicas has that right in members as well, and leaves the
// rest to who answers for it; who may write no more than a part of a Pod, a container
// that he adds or its resources, is one more author.
func (p *Authors) part(ctx context.Context, a admission.Attributes) error {
	if a.GetOperation() != admission.Update || a.IsDryRun() || a.GetOldObject() == nil || sameContent(a.GetOldObject(), a.GetObject()) {
		return nil
	}
	all := p.mayWrite(ctx, a)
	if !all && a.GetKind().Kind != "Pod" {
		return nil
	}
	objects := p.hub.Resource(a.GetResource()).Namespace(a.GetNamespace())
	template, err := objects.Get(ctx, a.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // nothing is changed, then
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("find out who applied %s: %w", a.GetName(), err))
	}
	before := template.GetAnnotations()[workv1alpha2.AppliedByAnnotation]
	if !authored(template.GroupVersionKind(), a.GetNamespace()) {
		return nil
	}
	text, err := written(template.GroupVersionKind().GroupKind(), before, a.GetUserInfo())
	if !all {
		text, err = joined(before, a.GetUserInfo())
	}
	if err != nil || text == before {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": template.GetResourceVersion(), // what somebody writes meanwhile is not his
		"annotations":     map[string]string{workv1alpha2.AppliedByAnnotation: text},
	}})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	_, err = objects.Patch(ctx, a.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "flotilla-authors"})
	return err
}

// mayWrite says whether who changes a part of an object may change all of it.
func (p *Authors) mayWrite(ctx context.Context, a admission.Attributes) bool {
	for _, verb := range []string{"update", "patch"} {
		resource := a.GetResource()
		decision, _, _ := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: a.GetUserInfo(), Verb: verb, Namespace: a.GetNamespace(), Name: a.GetName(), ResourceRequest: true,
			APIGroup: resource.Group, APIVersion: resource.Version, Resource: resource.Resource,
		})
		if decision == authorizer.DecisionAllow {
			return true
		}
	}
	return false
}
