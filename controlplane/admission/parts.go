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

// Parts records who changes a part of a template by a sub-resource, such as its replicas
// by scale. The object in such a request is not the template, so an annotation on it would
// be lost. A user who may write the whole template becomes its author, as if he had written
// all of it. A user who may only write replicas has that right in members as well, and the
// authors stay as they are. A user who may only write a part of a Pod, such as a container
// that he adds or its resources, becomes one more author.
//
// It runs last, at each attempt to store the request: a request that is refused makes
// nobody an author.
type Parts struct {
	*admission.Handler
	hub        dynamic.Interface
	authorizer authorizer.Authorizer // decides who may write a whole object
}

var (
	_ admission.ValidationInterface     = (*Parts)(nil)
	_ admission.InitializationValidator = (*Parts)(nil)
)

// NewParts returns the plugin.
func NewParts() *Parts { return &Parts{Handler: admission.NewHandler(admission.Update)} }

// SetDynamicClient sets the client. The server calls it with a client of its own.
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

// ofPart reports whether a request concerns a sub-resource other than the status.
func ofPart(a admission.Attributes) bool {
	return a.GetSubresource() != "" && a.GetSubresource() != "status"
}

// Validate records the user as an author, in the object itself. It refuses the request if
// that fails.
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
		return nil // the request changes nothing
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
		"resourceVersion": template.GetResourceVersion(), // he is not the author of what others write meanwhile
		"annotations":     map[string]string{workv1alpha2.AppliedByAnnotation: text},
	}})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	// The patch changes the version, so the request is retried and finds its author set.
	_, err = objects.Patch(ctx, a.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "flotilla-authors"})
	return err
}

// mayWrite reports whether the user may update or patch the whole object.
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
