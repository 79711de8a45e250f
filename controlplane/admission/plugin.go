package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
)

// Plugin completes and validates objects of the kinds that it knows.
type Plugin struct {
	*admission.Handler
	newID func() string
	apis  meta.RESTMapper
}

var (
	_ admission.MutationInterface       = (*Plugin)(nil)
	_ admission.ValidationInterface     = (*Plugin)(nil)
	_ admission.InitializationValidator = (*Plugin)(nil)
)

// NewPlugin returns a plugin that takes permanent ids from newID.
func NewPlugin(newID func() string) *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), newID: newID}
}

// SetRESTMapper is told by the server which APIs it serves.
func (p *Plugin) SetRESTMapper(mapper meta.RESTMapper) { p.apis = mapper }

// ValidateInitialization is called when the server is built.
func (p *Plugin) ValidateInitialization() error {
	if p.apis == nil {
		return errors.New("no list of served APIs")
	}
	return nil
}

// Admit completes an object.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	k, obj, old := of(a)
	if obj == nil {
		return nil
	}
	k.identity.Give(obj, metaOf(old), p.newID)
	if k.finalizer != "" && obj.GetDeletionTimestamp() == nil && !slices.Contains(obj.GetFinalizers(), k.finalizer) {
		obj.SetFinalizers(append(obj.GetFinalizers(), k.finalizer))
	}
	if k.complete == nil || !k.understands(obj) {
		return nil
	}
	if err := k.complete(obj); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// understands says whether the kind's functions may be shown the object.
func (k kind) understands(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().Version == k.version
}

// Validate refuses an object that is wrong and warns of one that will not do
// what it says.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	k, obj, old := of(a)
	if obj == nil || obj.GetDeletionTimestamp() != nil { // what is going away needs only its finalizers removed
		return nil
	}
	if errs := k.identity.Check(obj, metaOf(old)); len(errs) > 0 {
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
	}
	if !k.understands(obj) {
		return nil
	}
	errs, warnings, err := k.check(obj, old)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
	}
	for _, text := range append(warnings, p.unserved(k, obj)...) {
		warning.AddWarning(ctx, "", text)
	}
	return nil
}

// unserved warns of kinds that the server lacks: templates of them cannot exist,
// so the policy will wait.
func (p *Plugin) unserved(k kind, obj *unstructured.Unstructured) []string {
	if k.selects == nil {
		return nil
	}
	apis, err := k.selects(obj)
	if err != nil {
		return nil // check has read the same object
	}
	var out []string
	for _, a := range apis {
		if p.lacks(a) {
			out = append(out, fmt.Sprintf("%s: the control plane does not serve %s of %s: nothing is propagated until its CustomResourceDefinition is applied here",
				a.path, a.kind, a.apiVersion))
		}
	}
	return out
}

// lacks says whether the server certainly does not serve a kind.
func (p *Plugin) lacks(a api) bool {
	gv, err := schema.ParseGroupVersion(a.apiVersion)
	if err != nil {
		return true
	}
	_, err = p.apis.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: a.kind}, gv.Version)
	return meta.IsNoMatchError(err)
}

// metaOf is nil where there is no object.
func metaOf(obj *unstructured.Unstructured) metav1.Object {
	if obj == nil {
		return nil
	}
	return obj
}

// of returns what to do with a request's object, the object, and what it
// replaces. The object is nil if the request is none of this plugin's.
func of(a admission.Attributes) (k kind, obj, old *unstructured.Unstructured) {
	k, known := kinds[a.GetResource().GroupResource()]
	if !known || a.GetSubresource() != "" {
		return k, nil, nil
	}
	obj, _ = a.GetObject().(*unstructured.Unstructured)
	old, _ = a.GetOldObject().(*unstructured.Unstructured)
	return k, obj, old
}
