package admission

import (
	"context"
	"reflect"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/author"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// Authors notes on what may become an object in a member who applied it: templates,
// overrides and Works. Whoever changes the content is its author from then on; what
// he says of that himself does not count. Administrators and the control plane are no
// authors: what they make has none, and what they change keeps its own, unless they
// take that off.
type Authors struct{ *admission.Handler }

var _ admission.MutationInterface = Authors{}

// NewAuthors returns the plugin.
func NewAuthors() Authors { return Authors{admission.NewHandler(admission.Create, admission.Update)} }

// Admit notes who writes an object, or keeps who wrote it last.
func (Authors) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	who := a.GetUserInfo()
	if !authored(a.GetKind(), a.GetNamespace()) || MayBringIdentity(who) || isOwn(who) {
		return nil
	}
	obj, err := meta.Accessor(a.GetObject())
	if err != nil {
		return nil //nolint:nilerr // what has no metadata is no template
	}
	old, err := meta.Accessor(a.GetOldObject())
	switch {
	case a.GetOldObject() == nil || err != nil:
		if a.GetSubresource() == "" {
			noteAuthor(obj, authorOf(who))
		}
	case a.GetSubresource() == "" && !sameContent(a.GetOldObject(), a.GetObject()):
		noteAuthor(obj, authorOf(who))
	case reflect.TypeOf(a.GetObject()) == reflect.TypeOf(a.GetOldObject()): // of a sub-resource it may be something else
		noteAuthor(obj, old.GetAnnotations()[workv1alpha2.AppliedByAnnotation])
	}
	return nil
}

// unauthored are groups of kinds that are questions, records or requests.
var unauthored = []string{"authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io"}

// authored says whether objects of a kind have authors.
func authored(kind schema.GroupVersionKind, namespace string) bool {
	switch kind.GroupKind() {
	case schema.GroupKind{Group: workv1alpha1.GroupName, Kind: workv1alpha1.ResourceKindWork},
		schema.GroupKind{Group: policyv1alpha1.GroupName, Kind: policyv1alpha1.ResourceKindOverridePolicy},
		schema.GroupKind{Group: policyv1alpha1.GroupName, Kind: policyv1alpha1.ResourceKindClusterOverridePolicy}:
		return true
	}
	return !slices.Contains(unauthored, kind.Group) && propagation.PropagatesKind(kind, propagation.SkipRules{}) && !propagation.Reserved(namespace)
}

func authorOf(who user.Info) string {
	return author.Authors{author.Of(who.GetName(), who.GetGroups())}.String()
}

// noteAuthor writes the text of an annotation, or takes it off where it is empty.
func noteAuthor(obj metav1.Object, text string) {
	notes := obj.GetAnnotations()
	if notes[workv1alpha2.AppliedByAnnotation] == text && text != "" {
		return
	}
	out := map[string]string{}
	for key, value := range notes {
		out[key] = value
	}
	if delete(out, workv1alpha2.AppliedByAnnotation); text != "" {
		out[workv1alpha2.AppliedByAnnotation] = text
	}
	if len(out) == 0 {
		out = nil
	}
	obj.SetAnnotations(out)
}

// sameContent says whether two states of an object have the same in members: all but
// the status and what the server keeps in the metadata.
func sameContent(a, b runtime.Object) bool {
	a, b = bare(a), bare(b)
	return a != nil && b != nil && apiequality.Semantic.DeepEqual(a, b)
}

// bare returns a copy of an object without what does not reach members; nil where
// that cannot be told.
func bare(obj runtime.Object) runtime.Object {
	out := obj.DeepCopyObject()
	m, err := meta.Accessor(out)
	if err != nil {
		return nil
	}
	out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // what was read has none, what was patched does
	m.SetManagedFields(nil)
	m.SetResourceVersion("")
	m.SetGeneration(0)
	m.SetSelfLink("")
	m.SetUID(types.UID(""))
	m.SetCreationTimestamp(metav1.Time{})
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	m.SetOwnerReferences(nil)
	m.SetFinalizers(nil)
	noteAuthor(m, "")
	if custom, ok := out.(*unstructured.Unstructured); ok {
		delete(custom.Object, "status")
		return out
	}
	if v := reflect.ValueOf(out); v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct {
		if status := v.Elem().FieldByName("Status"); status.IsValid() && status.CanSet() {
			status.SetZero()
		}
	}
	return out
}
