package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Parts notes who changes a part of a template by a sub-resource of it, as its replicas
// by scale. What is written there is no template: nothing that is noted on it would
// stay. Who may write the whole of it is its author from then on, as if he had. Who
// may write no more than replicas has that right in members as well, and leaves the
// rest to who answers for it; who may write no more than a part of a Pod, a container
// that he adds or its resources, is one more author.
//
// It runs last, once nobody refuses the request any more, at each try to store it: what
// is refused makes nobody an author.
type Parts struct {
	*admission.Handler
	hub        dynamic.Interface
	authorizer authorizer.Authorizer // says who may write a whole object
}

var (
	_ admission.ValidationInterface     = (*Parts)(nil)
	_ admission.InitializationValidator = (*Parts)(nil)
)

// NewParts returns the plugin.
func NewParts() *Parts { return &Parts{Handler: admission.NewHandler(admission.Update)} }

// SetDynamicClient is given by the server a client of its own.
func (p *Parts) SetDynamicClient(hub dynamic.Interface) { p.hub = hub }

// SetAuthorizer implements initializer.WantsAuthorizer.
func (p *Parts) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

// ValidateInitialization is called when the server is built.
func (p *Parts) ValidateInitialization() error {
	switch {
	case p.hub == nil:
		return errors.New("no client")
	case p.authorizer == nil:
		return errors.New("no authorizer")
	}
	return nil
}

// ofPart reports whether a request is about a part of an object that is content.
func ofPart(a admission.Attributes) bool {
	return a.GetSubresource() != "" && a.GetSubresource() != "status"
}

// Validate notes who writes, in the object itself. It refuses what it could not note.
func (p *Parts) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	who := a.GetUserInfo()
	if MayBringIdentity(who) || isOwn(who) || !ofPart(a) {
		return nil
	}
	if a.IsDryRun() || a.GetOldObject() == nil || sameContent(a.GetOldObject(), a.GetObject()) {
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
	if old, err := meta.Accessor(a.GetOldObject()); err == nil && old.GetResourceVersion() != template.GetResourceVersion() {
		return apierrors.NewConflict(a.GetResource().GroupResource(), a.GetName(), errors.New("it has changed meanwhile: try again"))
	}
	before := template.GetAnnotations()[workv1alpha2.AppliedByAnnotation]
	if !authored(template.GroupVersionKind(), a.GetNamespace()) {
		return nil
	}
	text, err := written(template.GroupVersionKind().GroupKind(), before, a.GetUserInfo())
	if !all {
		text, err = joined(before, a.GetUserInfo())
	}
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	if text == before {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": template.GetResourceVersion(), // what somebody writes meanwhile is not his
		"annotations":     map[string]string{workv1alpha2.AppliedByAnnotation: text},
	}})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	// The object is another one from here on: it is tried again, and has its author then.
	_, err = objects.Patch(ctx, a.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "flotilla-authors"})
	return err
}

// mayWrite reports whether who changes a part of an object may change all of it.
func (p *Parts) mayWrite(ctx context.Context, a admission.Attributes) bool {
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
