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

// Authors notes on what may become an object in a member who applied it: templates,
// overrides and Works. Whoever changes the content of a template is its author from
// then on; of overrides and Works, whose content nobody judges but members, he is one
// more. What he says of that himself does not count. Administrators and the control
// plane are no authors: what they make has none, and what they change keeps its own,
// unless they take that off.
// What he does to a part of one is for Parts.
type Authors struct{ *admission.Handler }

var _ admission.MutationInterface = (*Authors)(nil)

// NewAuthors returns the plugin.
func NewAuthors() *Authors {
	return &Authors{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Admit notes who writes an object, or keeps who wrote it last.
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

// mostAuthors is how many may have a word in one override or Work: each of them is
// asked for in members whenever it is applied.
const mostAuthors = 16

// written says whose word is in an object once somebody has changed its content, before
// whom it was that of others.
func written(kind schema.GroupKind, before string, who user.Info) (string, error) {
	if !judgedInMembers(kind) {
		return authors(who).String(), nil
	}
	return joined(before, who)
}

// joined says whose word is in what others wrote before, if somebody writes in it, too.
func joined(before string, who user.Info) (string, error) {
	all, err := author.Parse(before)
	if err != nil {
		return before, nil //nolint:nilerr // whose it is nobody knows, and so nobody applies it
	}
	if all = all.With(authors(who)); len(all) > mostAuthors {
		return before, fmt.Errorf("%d users have written in it, who all have to be allowed what it says: delete it and make it anew", mostAuthors)
	}
	return all.String(), nil
}

// judgedInMembers reports whether nobody but members judges what an object of a kind has
// them make. The control plane judges a template when it is written as they do.
func judgedInMembers(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Group: workv1alpha1.GroupName, Kind: workv1alpha1.ResourceKindWork} || overrides(kind)
}

// overrides reports whether objects of a kind change what others mean.
func overrides(kind schema.GroupKind) bool {
	return kind.Group == policyv1alpha1.GroupName &&
		(kind.Kind == policyv1alpha1.ResourceKindOverridePolicy || kind.Kind == policyv1alpha1.ResourceKindClusterOverridePolicy)
}

// unauthored are groups of kinds that are questions.
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

// sameInMembers reports whether an update leaves what members are sent as it is. Of an
// override that is its spec: its labels and annotations reach nobody.
func sameInMembers(a admission.Attributes) bool {
	old, now := stateOf(a.GetOldObject()), stateOf(a.GetObject())
	if old != nil && now != nil && overrides(a.GetKind().GroupKind()) {
		return apiequality.Semantic.DeepEqual(old.Object["spec"], now.Object["spec"])
	}
	return sameContent(a.GetOldObject(), a.GetObject())
}

// sameContent reports whether two states of an object have the same in members: all but
// the status and what the server keeps in the metadata.
func sameContent(a, b runtime.Object) bool {
	a, b = bare(a), bare(b)
	return a != nil && b != nil && apiequality.Semantic.DeepEqual(a, b)
}

// bare returns a copy of an object without what does not reach members; nil where
// that is not known.
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
