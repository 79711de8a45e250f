package dependency

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// Case is an object that may be a dependency, and all that the decision about its binding depends on.
type Case struct {
	// Object as the hub holds it; nil where that is not known, or there is none. A
	// binding is neither made nor brought up to date without it.
	Object *unstructured.Unstructured
	// Binding of the object; nil if it has none.
	Binding workv1alpha2.Binding
	// Users that need the object, in any order.
	Users []User
	// Left reports whether a user that the binding names, and that is not among
	// Users, is known not to need the object any more. Nil: none is.
	Left func(Ref) bool
	// NewID makes the permanent id of a binding that is made.
	NewID func() string
}

// Decision is what happens to the object's binding.
type Decision struct {
	// Binding to be written; nil where there is to be none.
	Binding workv1alpha2.Binding
	// Joined and Parted are the users that it did not name before, and those that
	// it does not name any more; sorted.
	Joined, Released []Ref
	// Conflict says, in words, what users of an attached binding do not agree
	// about, and what holds; empty where they agree.
	Conflict string
}

// Decide returns the decision about the object's binding.
func Decide(c Case) Decision {
	entries, users, open := c.entries()
	var d Decision
	if c.Binding == nil {
		if len(entries) == 0 || c.Object == nil {
			return d
		}
		d.Binding = c.empty()
	} else {
		d.Binding = c.Binding.DeepCopyObject().(workv1alpha2.Binding)
	}
	spec := d.Binding.BindingSpec()
	d.Joined, d.Released = changes(spec.RequiredBy, entries)
	tied := Tied(d.Binding)
	spec.RequiredBy = entries
	tie(d.Binding, entries, users)
	switch {
	case Governed(d.Binding):
		thaw(d.Binding, c.Object, len(entries) > 0, len(d.Released) > 0)
	case len(entries) > 0:
		c.describe(d.Binding)
		if d.Conflict = agree(spec, users); open {
			d.Conflict = ""
			keep(spec, c.Binding.BindingSpec())
		}
	case tied:
		d.Binding = nil // nothing else needs it
	}
	return d
}

// entries returns who needs the object, sorted: those that do, and those that
// the binding names and of which it is not known whether they still do. Users
// are those of the former that run anywhere; open is true where there are some
// of the latter.
func (c *Case) entries() (entries []workv1alpha2.BindingSnapshot, users []User, open bool) {
	for _, u := range c.Users {
		if len(u.Clusters) == 0 {
			continue
		}
		entry := workv1alpha2.BindingSnapshot{Namespace: u.Namespace, Name: u.Name}
		for _, name := range u.Clusters {
			entry.Clusters = append(entry.Clusters, workv1alpha2.TargetCluster{Name: name})
		}
		u.Overwrites = u.Overwrites && (u.Administered || u.Namespace == c.namespace())
		entries, users = append(entries, entry), append(users, u)
	}
	if c.Binding != nil {
		known := map[Ref]bool{}
		for _, u := range c.Users {
			known[u.Ref] = true
		}
		for _, by := range c.Binding.BindingSpec().RequiredBy {
			ref := Ref{Namespace: by.Namespace, Name: by.Name}
			if known[ref] || c.Left != nil && c.Left(ref) {
				continue
			}
			known[ref] = true // a list may name one twice
			entries, open = append(entries, *by.DeepCopy()), true
		}
	}
	slices.SortFunc(entries, func(a, b workv1alpha2.BindingSnapshot) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(users, func(a, b User) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return entries, users, open
}

// namespace is that of the object. A user of another namespace's object cannot allow that
// it overwrites what members have.
func (c *Case) namespace() string {
	if c.Object != nil {
		return c.Object.GetNamespace()
	}
	return c.Binding.GetNamespace()
}

// empty returns a binding of the object without content.
func (c *Case) empty() workv1alpha2.Binding {
	namespace := c.Object.GetNamespace()
	meta := metav1.ObjectMeta{
		Namespace: namespace,
		Name:      workv1alpha2.BindingName(c.Object.GetKind(), c.Object.GetName()),
		Labels:    map[string]string{idLabel(namespace): c.NewID()},
	}
	if namespace == "" {
		meta.Finalizers = []string{workv1alpha2.ClusterResourceBindingControllerFinalizer}
		return &workv1alpha2.ClusterResourceBinding{ObjectMeta: meta}
	}
	meta.Finalizers = []string{workv1alpha2.BindingControllerFinalizer}
	return &workv1alpha2.ResourceBinding{ObjectMeta: meta}
}

// changes returns the users that are only in after, and those only in before.
func changes(before, after []workv1alpha2.BindingSnapshot) (joined, released []Ref) {
	was, is := refs(before), refs(after)
	for _, ref := range is {
		if !slices.Contains(was, ref) {
			joined = append(joined, ref)
		}
	}
	for _, ref := range was {
		if !slices.Contains(is, ref) {
			released = append(released, ref)
		}
	}
	return joined, released
}

func refs(snapshots []workv1alpha2.BindingSnapshot) []Ref {
	out := make([]Ref, 0, len(snapshots))
	for i := range snapshots {
		out = append(out, Ref{Namespace: snapshots[i].Namespace, Name: snapshots[i].Name})
	}
	return out
}

// tie sets on b a label for each entry, and removes all other such labels. An entry whose
// user is not known keeps the one that it has.
func tie(b workv1alpha2.Binding, entries []workv1alpha2.BindingSnapshot, users []User) {
	want := map[string]string{}
	for i := range entries {
		ref := Ref{Namespace: entries[i].Namespace, Name: entries[i].Name}
		key := ref.label()
		if id, has := b.GetLabels()[key]; has {
			want[key] = id
		} else if id, has := b.GetLabels()[ref.formerLabel()]; has {
			want[key] = id
		}
	}
	for _, u := range users {
		want[u.label()] = u.ID
	}
	labels := maps.Clone(b.GetLabels())
	maps.DeleteFunc(labels, func(key, _ string) bool {
		_, wanted := want[key]
		return strings.HasPrefix(key, workv1alpha2.DependedByLabelPrefix) && !wanted
	})
	if len(want) > 0 && labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, want)
	b.SetLabels(labels)
}

// thaw passes edits of the object on to its users where its policy has released
// it: a released binding keeps the version of that moment otherwise. It
// does so again once nobody needs the object any more.
func thaw(b workv1alpha2.Binding, obj *unstructured.Unstructured, needed, released bool) {
	_, claimed := propagation.Claimed(b)
	if claimed || b.BindingSpec().Placement == nil || b.GetLabels()[workv1alpha2.BindingManagedByLabel] != "" {
		return
	}
	_, frozen := b.GetAnnotations()[propagation.DigestAnnotation]
	switch {
	case needed && frozen:
		forget(b)
	case !needed && released && !frozen && obj != nil:
		if digest, err := propagation.Digest(obj); err == nil {
			propagation.Note(b, digest, "")
		}
	}
}

// forget removes from b the version of its template: it then stands for any.
func forget(b workv1alpha2.Binding) {
	annotations := maps.Clone(b.GetAnnotations())
	delete(annotations, propagation.DigestAnnotation)
	delete(annotations, propagation.EditionAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	b.SetAnnotations(annotations)
}

// describe makes an attached binding refer to the object.
func (c *Case) describe(b workv1alpha2.Binding) {
	forget(b)
	if c.Object == nil {
		return
	}
	ref := &b.BindingSpec().Resource
	if ref.UID == c.Object.GetUID() && ref.Name == c.Object.GetName() {
		return
	}
	*ref = workv1alpha2.ObjectReference{
		APIVersion: c.Object.GetAPIVersion(), Kind: c.Object.GetKind(),
		Namespace: c.Object.GetNamespace(), Name: c.Object.GetName(),
		UID: c.Object.GetUID(), ResourceVersion: c.Object.GetResourceVersion(),
	}
	owners := slices.DeleteFunc(slices.Clone(b.GetOwnerReferences()), func(o metav1.OwnerReference) bool {
		return o.UID == ref.UID || ptr.Deref(o.Controller, false)
	})
	b.SetOwnerReferences(append(owners, *metav1.NewControllerRef(c.Object, c.Object.GroupVersionKind())))
}

// agree sets the options that users of an attached binding have for its objects in the
// clusters, and returns those on which they differ.
func agree(spec *workv1alpha2.ResourceBindingSpec, users []User) string {
	var mixed []string
	vote := func(what string, strong, weak string, has func(User) bool) bool {
		i := slices.IndexFunc(users, has)
		j := slices.IndexFunc(users, func(u User) bool { return !has(u) })
		if i >= 0 && j >= 0 {
			mixed = append(mixed, fmt.Sprintf("%s is %s for %s, but %s for %s: %s holds", what, strong, users[i].Ref, weak, users[j].Ref, strong))
		}
		return i >= 0
	}
	spec.ConflictResolution, spec.PreserveResourcesOnDeletion, spec.Drift = policyv1alpha1.ConflictAbort, nil, policyv1alpha1.DriftReport
	if vote("conflictResolution", "Overwrite", "Abort", func(u User) bool { return u.Overwrites }) {
		spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
	}
	if vote("preserveResourcesOnDeletion", "true", "false", func(u User) bool { return u.Preserves }) {
		spec.PreserveResourcesOnDeletion = ptr.To(true)
	}
	if vote("drift", "Revert", "Report", func(u User) bool { return !u.Reports }) {
		spec.Drift = ""
	}
	return strings.Join(mixed, "; ")
}

// keep leaves what is not known yet as it was: some users are not known.
func keep(spec, was *workv1alpha2.ResourceBindingSpec) {
	spec.ConflictResolution, spec.PreserveResourcesOnDeletion, spec.Drift = was.ConflictResolution, was.PreserveResourcesOnDeletion, was.Drift
}
