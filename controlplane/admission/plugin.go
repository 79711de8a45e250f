package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	definitions "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/dynamic"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/author"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// Options configure a Plugin.
type Options struct {
	// NewID returns a new permanent id.
	NewID func() string
	// AllowNoExecuteTaints accepts ClusterTaintPolicies whose taints evict.
	AllowNoExecuteTaints bool
}

// Plugin completes and validates objects of the kinds that it knows.
type Plugin struct {
	*admission.Handler
	opts  Options
	kinds map[schema.GroupResource]validate.Kind
	apis  byDefinition
	hub   dynamic.Interface
	// authorizer decides who may interpret resources.
	authorizer authorizer.Authorizer
}

var (
	_ admission.MutationInterface       = (*Plugin)(nil)
	_ admission.ValidationInterface     = (*Plugin)(nil)
	_ admission.InitializationValidator = (*Plugin)(nil)
)

// NewPlugin returns a plugin.
func NewPlugin(opts Options) *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), opts: opts, kinds: customKinds()}
}

// SetRESTMapper implements initializer.WantsRESTMapper.
func (p *Plugin) SetRESTMapper(mapper meta.RESTMapper) { p.apis.RESTMapper = mapper }

// SetDefinitions implements apiserver.WantsDefinitions.
func (p *Plugin) SetDefinitions(all definitions.CustomResourceDefinitionLister) {
	p.apis.definitions = all
}

// SetDynamicClient sets the client. The server calls it with a client of its own.
func (p *Plugin) SetDynamicClient(hub dynamic.Interface) { p.hub = hub }

// ValidateInitialization is called when the server is built.
func (p *Plugin) ValidateInitialization() error {
	if p.apis.RESTMapper == nil {
		return errors.New("no list of served APIs")
	}
	if p.hub == nil {
		return errors.New("no client")
	}
	if p.authorizer == nil {
		return errors.New("no authorizer")
	}
	return nil
}

// Admit completes an object.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	k, obj, old := p.of(a)
	if obj == nil {
		return nil
	}
	identity := k.Identity
	identity.Own = identity.Own || !MayBringIdentity(a.GetUserInfo())
	identity.Give(obj, metaOf(old), p.opts.NewID)
	if k.Finalizer != "" && obj.GetDeletionTimestamp() == nil && !slices.Contains(obj.GetFinalizers(), k.Finalizer) {
		obj.SetFinalizers(append(obj.GetFinalizers(), k.Finalizer))
	}
	if !understands(k, obj) {
		return nil
	}
	if err := complete(k, obj); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// MayBringIdentity reports whether a user may create objects with a permanent id, as a
// restore from a backup does. Dependent objects are found and deleted by that id, so a
// user who could choose one would reach the objects of others.
func MayBringIdentity(u user.Info) bool {
	return isOwn(u) || slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup)
}

// Validate refuses an invalid object and warns about one that will not have the intended
// effect.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	k, obj, old := p.of(a)
	if obj == nil {
		return nil
	}
	errs := k.Identity.Check(obj, metaOf(old))
	var warnings []string
	if understands(k, obj) && obj.GetDeletionTimestamp() == nil { // a deleted object only loses its finalizers
		facts, unread, err := p.facts(ctx, k, obj.GetName())
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		more, unwise, value, err := check(k, obj, old, facts)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		if err := p.mayInterpret(ctx, a, k, obj, old); err != nil {
			return err
		}
		errs = distinct(append(errs, more...))
		warnings = slices.Concat(unwise, p.unserved(value), unread)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
	}
	for _, text := range warnings {
		warning.AddWarning(ctx, "", text)
	}
	return nil
}

// mostFaults is how many errors of one object are listed: nobody reads more, and the time
// to build the answer grows with their square.
const mostFaults = 100

// distinct removes duplicate errors. Beyond mostFaults it only counts them, in one more
// error at the end.
func distinct(errs field.ErrorList) field.ErrorList {
	var out field.ErrorList
	seen, more := map[string]bool{}, 0
	for _, e := range errs {
		text := e.Error()
		switch {
		case seen[text]:
			continue
		case len(out) < mostFaults:
			out = append(out, e)
		default:
			more++
		}
		seen[text] = true
	}
	if more > 0 {
		out = append(out, field.Forbidden(field.NewPath("spec"), fmt.Sprintf("%d more faults are not named: correct these first", more)))
	}
	return out
}

// facts returns what the checks of the object with that name need beside the object itself.
// A customization that cannot be read does not prevent others from being written: unread
// has a warning about it.
func (p *Plugin) facts(ctx context.Context, k validate.Kind, name string) (facts validate.Facts, unread []string, err error) {
	facts = validate.Facts{AllowNoExecuteTaints: p.opts.AllowNoExecuteTaints}
	if k.Resource != "resourceinterpretercustomizations" {
		return facts, nil, nil
	}
	list, err := p.hub.Resource(k.GroupVersion().WithResource(k.Resource)).List(ctx, metav1.ListOptions{})
	if err != nil {
		return facts, nil, fmt.Errorf("list the customizations that there are: %w", err)
	}
	for i := range list.Items {
		var other configv1alpha1.ResourceInterpreterCustomization
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &other)
		switch {
		case err == nil:
			facts.Customizations = append(facts.Customizations, other)
		case list.Items[i].GetName() != name: // the request replaces that one
			unread = append(unread, fmt.Sprintf("the ResourceInterpreterCustomization %s cannot be read, so this one was not compared with it: correct or delete it: %v",
				list.Items[i].GetName(), err))
		}
	}
	return facts, unread, nil
}

// unserved returns warnings about selected kinds that the server does not serve: no
// templates of them can exist, so the policy has no effect on them yet.
func (p *Plugin) unserved(obj validate.Object) []string {
	var out []string
	for i, s := range selectorsOf(obj) {
		if p.lacks(s) {
			out = append(out, fmt.Sprintf("%s: the control plane does not serve %s of %s: nothing is propagated until its CustomResourceDefinition is applied here",
				field.NewPath("spec", "resourceSelectors").Index(i), s.Kind, s.APIVersion))
		}
	}
	return out
}

// lacks reports whether the server certainly does not serve a kind.
func (p *Plugin) lacks(s policyv1alpha1.ResourceSelector) bool {
	gv, err := schema.ParseGroupVersion(s.APIVersion)
	if err != nil {
		return true
	}
	_, err = p.apis.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: s.Kind}, gv.Version)
	return meta.IsNoMatchError(err)
}

// metaOf returns obj as an interface that is nil if obj is nil.
func metaOf(obj *unstructured.Unstructured) metav1.Object {
	if obj == nil {
		return nil
	}
	return obj
}

// of returns the kind of a request's object, the object, and the object that it replaces.
// obj is nil if the plugin does not handle the request.
func (p *Plugin) of(a admission.Attributes) (k validate.Kind, obj, old *unstructured.Unstructured) {
	k, known := p.kinds[a.GetResource().GroupResource()]
	if !known || a.GetSubresource() != "" {
		return k, nil, nil
	}
	obj, _ = a.GetObject().(*unstructured.Unstructured)
	old, _ = a.GetOldObject().(*unstructured.Unstructured)
	return k, obj, old
}

// isOwn reports whether a user belongs to the control plane: its loops, or the Kubernetes
// controllers in it.
func isOwn(u user.Info) bool { return u == nil || author.Own(u.GetName()) }
