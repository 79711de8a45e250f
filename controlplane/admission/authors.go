package admission

import (
	"context"
	"fmt"
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

// Authors records who applied a template, an override or a Work, in an annotation. A user
// who changes the content of a template becomes its only author. A user who changes an
// override or a Work becomes one more author, because only members judge their content.
// What a user writes into the annotation is ignored. Administrators and the control
// plane are no authors: what they create has none, and what they change keeps its
// authors unless they remove the annotation.
//
// Parts handles changes by a sub-resource.
type Authors struct{ *admission.Handler }

var _ admission.MutationInterface = (*Authors)(nil)

// NewAuthors returns the plugin.
func NewAuthors() *Authors {
	return &Authors{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Admit records who writes an object, or keeps the recorded authors if the content does
// not change.
func (p *Authors) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	who := a.GetUserInfo()
	if MayBringIdentity(who) || isOwn(who) || ofPart(a) || !authored(a.GetKind(), a.GetNamespace()) {
		return nil
	}
	obj, err := meta.Accessor(a.GetObject())
	if err != nil {
		return nil //nolint:nilerr // what has no metadata is no template
	}
	old, err := meta.Accessor(a.GetOldObject())
	if a.GetOldObject() == nil || err != nil {
		if a.GetSubresource() == "" {
			noteAuthor(obj, authors(who).String())
		}
		return nil
	}
	before := old.GetAnnotations()[workv1alpha2.AppliedByAnnotation]
	if a.GetSubresource() != "" || sameInMembers(a) {
		noteAuthor(obj, before)
		return nil
	}
	text, err := written(a.GetKind().GroupKind(), before, who)
	noteAuthor(obj, text)
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// mostAuthors is how many authors one override or Work may have: members check the rights
// of each whenever it is applied.
const mostAuthors = 16

// written returns the annotation with the authors of an object after a user has changed
// its content; before is the annotation until then.
func written(kind schema.GroupKind, before string, who user.Info) (string, error) {
	if !judgedInMembers(kind) {
		return authors(who).String(), nil
	}
	return joined(before, who)
}

// joined returns the annotation with the authors in before and one more user. It fails,
// and returns before, if there are too many.
func joined(before string, who user.Info) (string, error) {
	all, err := author.Parse(before)
	if err != nil {
		return before, nil //nolint:nilerr // without known authors, nobody applies it
	}
	if all = all.With(authors(who)); len(all) > mostAuthors {
		return before, fmt.Errorf("%d users have written in it, who all have to be allowed what it says: delete it and make it anew", mostAuthors)
	}
	return all.String(), nil
}

// judgedInMembers reports whether only members judge what an object of a kind makes them
// create. A template is judged by the control plane in the same way when it is written.
func judgedInMembers(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Group: workv1alpha1.GroupName, Kind: workv1alpha1.ResourceKindWork} || overrides(kind)
}

// overrides reports whether a kind is OverridePolicy or ClusterOverridePolicy.
func overrides(kind schema.GroupKind) bool {
	return kind.Group == policyv1alpha1.GroupName &&
		(kind.Kind == policyv1alpha1.ResourceKindOverridePolicy || kind.Kind == policyv1alpha1.ResourceKindClusterOverridePolicy)
}

// unauthored are the API groups of review requests, which are answered and not stored.
var unauthored = []string{"authentication.k8s.io", "authorization.k8s.io"}

// authored reports whether objects of a kind have authors.
func authored(kind schema.GroupVersionKind, namespace string) bool {
	if judgedInMembers(kind.GroupKind()) {
		return true
	}
	return !slices.Contains(unauthored, kind.Group) && propagation.PropagatesKind(kind, propagation.SkipRules{}) && !propagation.Reserved(namespace)
}

func authors(who user.Info) author.Authors {
	return author.Authors{author.Of(who.GetName(), who.GetGroups())}
}

// noteAuthor sets the annotation with the authors, or removes it if text is empty.
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

// sameInMembers reports whether an update leaves what members receive unchanged. Of an
// override only the spec counts: its labels and annotations reach no member.
func sameInMembers(a admission.Attributes) bool {
	old, now := stateOf(a.GetOldObject()), stateOf(a.GetObject())
	if old != nil && now != nil && overrides(a.GetKind().GroupKind()) {
		return apiequality.Semantic.DeepEqual(old.Object["spec"], now.Object["spec"])
	}
	return sameContent(a.GetOldObject(), a.GetObject())
}

// sameContent reports whether two states of an object are equal apart from the status and
// the metadata that the server maintains.
func sameContent(a, b runtime.Object) bool {
	a, b = bare(a), bare(b)
	return a != nil && b != nil && apiequality.Semantic.DeepEqual(a, b)
}

// bare returns a copy of an object without what does not reach members; nil if the object
// has no metadata.
func bare(obj runtime.Object) runtime.Object {
	out := obj.DeepCopyObject()
	m, err := meta.Accessor(out)
	if err != nil {
		return nil
	}
	out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // set in patched objects, not in read ones
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
