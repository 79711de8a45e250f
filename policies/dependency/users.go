package dependency

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Ref names the binding of a user. Namespace is empty for a cluster-scoped one.
type Ref struct{ Namespace, Name string }

// String returns the name, with the namespace before it where there is one.
func (r Ref) String() string { return strings.TrimPrefix(r.Namespace+"/"+r.Name, "/") }

// label returns the key of the label by which an attached binding names r.
func (r Ref) label() string {
	return workv1alpha2.DependedByLabelPrefix + workv1alpha2.BindingReferenceKey(r.Namespace, r.Name)
}

// formerLabel returns the key of that label while keys were made otherwise.
func (r Ref) formerLabel() string {
	return workv1alpha2.DependedByLabelPrefix + workv1alpha2.FormerBindingReferenceKey(r.Namespace, r.Name)
}

// User is a template whose dependencies go along, as its binding says.
type User struct {
	Ref
	// ID is the permanent id of its binding.
	ID string
	// Clusters that hold the template or are to, sorted: those of its placement,
	// those that it is leaving gracefully, and those that have not let it go yet.
	Clusters []string
	// Overwrites, Preserves and Reports are what the binding says about what is in
	// the way, about what leaves, and about what others change.
	Overwrites, Preserves, Reports bool
	// Administered: a cluster-wide policy carries the template, so that an
	// administrator granted this to whatever it refers to.
	Administered bool
	// Needs are what the template refers to.
	Needs []Need
}

// UserOf returns the user that a binding stands for, without its needs. Holders
// are the clusters that have a Work of the binding: it may run there still,
// wherever it is to run now.
//
// A template that another one needs is no user in the clusters of that one:
// what it refers to itself goes along where its own placement is.
func UserOf(b workv1alpha2.Binding, clusters ...string) User {
	spec := b.BindingSpec()
	u := User{
		Ref:        Ref{Namespace: b.GetNamespace(), Name: b.GetName()},
		ID:         b.GetLabels()[idLabel(b.GetNamespace())],
		Overwrites: spec.ConflictResolution == policyv1alpha1.ConflictOverwrite,
		Preserves:  ptr.Deref(spec.PreserveResourcesOnDeletion, false),
		Reports:    spec.Drift == policyv1alpha1.DriftReport,
	}
	claim, claimed := propagation.Claimed(b)
	u.Administered = b.GetNamespace() == "" || claimed && claim.Namespace == ""
	for _, t := range spec.Clusters {
		u.Clusters = append(u.Clusters, t.Name)
	}
	for i := range spec.GracefulEvictionTasks {
		if task := &spec.GracefulEvictionTasks[i]; task.PurgeMode != policyv1alpha1.PurgeModeDirectly {
			u.Clusters = append(u.Clusters, task.FromCluster)
		}
	}
	u.Clusters = append(u.Clusters, clusters...)
	slices.Sort(u.Clusters)
	u.Clusters = slices.Compact(u.Clusters)
	return u
}

// Means reports whether the user refers to r.
func (u *User) Means(r selector.Resource) bool {
	return slices.ContainsFunc(u.Needs, func(n Need) bool { return n.Means(r) })
}

// Uses reports whether b is the binding of a template whose dependencies are to go
// none.
func Uses(b workv1alpha2.Binding) bool {
	return b.BindingSpec().PropagateDeps && b.GetDeletionTimestamp() == nil
}

// Refs returns the users that b names, sorted as they are there.
func Refs(b workv1alpha2.Binding) []Ref {
	by := b.BindingSpec().RequiredBy
	out := make([]Ref, 0, len(by))
	for i := range by {
		out = append(out, Ref{Namespace: by[i].Namespace, Name: by[i].Name})
	}
	return out
}

// Tied reports whether b records, in any field, that others need it.
func Tied(b workv1alpha2.Binding) bool {
	if len(b.BindingSpec().RequiredBy) > 0 {
		return true
	}
	for key := range b.GetLabels() {
		if strings.HasPrefix(key, workv1alpha2.DependedByLabelPrefix) {
			return true
		}
	}
	return false
}

// Governed reports whether anything but users decides how and where b's template runs.
func Governed(b workv1alpha2.Binding) bool {
	spec := b.BindingSpec()
	return spec.Placement != nil || len(spec.Clusters) > 0 || b.GetLabels()[workv1alpha2.BindingManagedByLabel] != ""
}

// Attached reports whether b runs only because of its users.
func Attached(b workv1alpha2.Binding) bool {
	return len(b.BindingSpec().RequiredBy) > 0 && !Governed(b)
}

// idLabel returns the label that holds the permanent id of a binding of the
// scope that namespace stands for.
func idLabel(namespace string) string {
	if namespace == "" {
		return workv1alpha2.ClusterResourceBindingPermanentIDLabel
	}
	return workv1alpha2.ResourceBindingPermanentIDLabel
}
