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

// strategy is how objects of a kind are written, but for their status.
type strategy[P object] struct {
	runtime.ObjectTyper
	storagenames.NameGenerator
	kind[P]
	newID func() string
}

// NamespaceScoped reports whether the kind's objects live in namespaces.
func (s strategy[P]) NamespaceScoped() bool { return s.namespaced }

// AllowCreateOnUpdate is false: PUT changes what exists.
func (strategy[P]) AllowCreateOnUpdate() bool { return false }

// AllowUnconditionalUpdate reports whether a write without resourceVersion wins; as
// with custom resources it does not where the kind has a definition.
func (s strategy[P]) AllowUnconditionalUpdate() bool { return !s.custom }

// GetResetFields says that the status is written elsewhere.
func (s strategy[P]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.resetFields("status")
}

// PrepareForCreate drops the status, gives an id and sets defaults. An id that
// the object brings counts only from those who could write any object.
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
		obj.SetManagedFields(nil) // as long as it has none, updates add none
	}
}

// applied reports whether somebody applied obj, who is to find what is theirs.
func applied(obj metav1.Object) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Operation == metav1.ManagedFieldsOperationApply
	})
}

// PrepareForUpdate keeps the status and the id, and counts changes of the spec.
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

// Validate lists what is wrong with a new object.
func (s strategy[P]) Validate(_ context.Context, o runtime.Object) field.ErrorList {
	var none P
	obj := o.(P)
	errs, _ := s.check(obj, none)
	for _, wrong := range validation.NameIsDNSSubdomain(obj.GetName(), false) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), obj.GetName(), wrong))
	}
	return append(errs, s.checkSpec(obj)...)
}

// WarningsOnCreate lists what is unwise about a new object.
func (s strategy[P]) WarningsOnCreate(_ context.Context, o runtime.Object) []string {
	var none P
	_, warnings := s.check(o.(P), none)
	return warnings
}

// ValidateUpdate lists what is wrong with a changed object. What is going away
// needs only its finalizers removed.
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

// WarningsOnUpdate lists what is unwise about a changed object.
func (s strategy[P]) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	_, warnings := s.check(obj.(P), old.(P))
	return warnings
}

// Canonicalize changes nothing: that was done before validation.
func (strategy[P]) Canonicalize(runtime.Object) {}

// statusStrategy is how the status is written: all else stays.
type statusStrategy[P object] struct{ strategy[P] }

// GetResetFields says that the spec is written elsewhere.
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

// ValidateUpdate lists what is wrong with a status. Of kinds that loops write they do so out of the Go type: it is not taken
// apart anew.
func (s statusStrategy[P]) ValidateUpdate(ctx context.Context, obj, _ runtime.Object) field.ErrorList {
	if s.custom && byOwn(ctx) {
		return nil
	}
	return s.checkStatus(obj.(P))
}

// byOwn reports whether a loop of the control plane asks.
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
