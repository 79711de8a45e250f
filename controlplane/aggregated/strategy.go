package aggregated

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	storagenames "k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flotilla-io/flotilla/controlplane/admission"
	"github.com/flotilla-io/flotilla/policies/author"
)

// strategy defines how objects of a kind are written, except for their status.
type strategy[P object] struct {
	runtime.ObjectTyper
	storagenames.NameGenerator
	kind[P]
	newID func() string
}

// NamespaceScoped reports whether the kind's objects live in namespaces.
func (s strategy[P]) NamespaceScoped() bool { return s.namespaced }

// AllowCreateOnUpdate is false: PUT only changes existing objects.
func (strategy[P]) AllowCreateOnUpdate() bool { return false }

// AllowUnconditionalUpdate reports whether an update without a resourceVersion is allowed. As
// with custom resources, it is not for kinds with a definition.
func (s strategy[P]) AllowUnconditionalUpdate() bool { return !s.custom }

// GetResetFields returns the status, which is written by its own sub-resource.
func (s strategy[P]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.resetFields("status")
}

// PrepareForCreate drops the status, sets the permanent id and the defaults. An id in the
// object is kept only if admission.MayBringIdentity allows it for the user.
func (s strategy[P]) PrepareForCreate(ctx context.Context, o runtime.Object) {
	obj := o.(P)
	var none P
	s.keepStatus(obj, s.newObject())
	identity := s.identity
	if u, known := genericapirequest.UserFrom(ctx); known && !admission.MayBringIdentity(u) {
		identity.Own = true
	}
	identity.Give(obj, nil, s.newID)
	s.complete(obj, none)
	obj.SetGeneration(1)
	if s.custom && !applied(obj) {
		obj.SetManagedFields(nil) // updates then add none either
	}
}

// applied reports whether a client applied obj on the server side and needs its managed
// fields.
func applied(obj metav1.Object) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Operation == metav1.ManagedFieldsOperationApply
	})
}

// PrepareForUpdate keeps the status and the id, and increases the generation if the spec
// changes.
func (s strategy[P]) PrepareForUpdate(_ context.Context, o, before runtime.Object) {
	obj, old := o.(P), before.(P)
	s.keepStatus(obj, old)
	s.identity.Give(obj, old, s.newID)
	s.complete(obj, old)
	obj.SetGeneration(old.GetGeneration())
	if !s.sameSpec(obj, old) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
}

// Validate returns the errors in a new object.
func (s strategy[P]) Validate(_ context.Context, o runtime.Object) field.ErrorList {
	var none P
	obj := o.(P)
	errs, _ := s.check(obj, none)
	for _, wrong := range validation.NameIsDNSSubdomain(obj.GetName(), false) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), obj.GetName(), wrong))
	}
	return append(errs, s.checkSpec(obj)...)
}

// WarningsOnCreate returns the warnings about a new object.
func (s strategy[P]) WarningsOnCreate(_ context.Context, o runtime.Object) []string {
	var none P
	_, warnings := s.check(o.(P), none)
	return warnings
}

// ValidateUpdate returns the errors in a changed object. For an object that is being deleted
// it checks only the id unless the spec changes, so that finalizers can always be removed.
func (s strategy[P]) ValidateUpdate(_ context.Context, o, before runtime.Object) field.ErrorList {
	obj, old := o.(P), before.(P)
	errs := s.identity.Check(obj, old)
	same := s.sameSpec(obj, old)
	if same && obj.GetDeletionTimestamp() != nil {
		return errs
	}
	more, _ := s.check(obj, old)
	errs = append(errs, more...)
	if same {
		return errs
	}
	return append(errs, s.checkSpec(obj)...)
}

// WarningsOnUpdate returns the warnings about a changed object.
func (s strategy[P]) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	_, warnings := s.check(obj.(P), old.(P))
	return warnings
}

// Canonicalize does nothing: defaults are set before validation.
func (strategy[P]) Canonicalize(runtime.Object) {}

// statusStrategy defines how the status is written; all else stays unchanged.
type statusStrategy[P object] struct{ strategy[P] }

// GetResetFields returns the spec, which a write to the status does not change.
func (s statusStrategy[P]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.resetFields("spec")
}

// PrepareForUpdate keeps the spec.
func (s statusStrategy[P]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	s.keepSpec(obj.(P), old.(P))
}

// WarningsOnUpdate is empty.
func (statusStrategy[P]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// ValidateUpdate returns the errors in a status. A status that one of our own loops writes is
// not checked for custom kinds: loops build it from the Go type.
func (s statusStrategy[P]) ValidateUpdate(ctx context.Context, obj, _ runtime.Object) field.ErrorList {
	if s.custom && byOwn(ctx) {
		return nil
	}
	return s.checkStatus(obj.(P))
}

// byOwn reports whether the user of a request is a loop of the control plane.
func byOwn(ctx context.Context) bool {
	user, known := genericapirequest.UserFrom(ctx)
	return known && author.Own(user.GetName())
}

func (k kind[P]) resetFields(name string) map[fieldpath.APIVersion]*fieldpath.Set {
	out := map[fieldpath.APIVersion]*fieldpath.Set{}
	for _, version := range k.versions {
		out[fieldpath.APIVersion(version.String())] = fieldpath.NewSet(fieldpath.MakePathOrDie(name))
	}
	return out
}
