package orphans

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/cascade"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// ID names an object in a member, whatever the version of its kind.
type ID struct {
	Kind schema.GroupKind
	types.NamespacedName
}

// String returns "ConfigMap shop/web".
func (id ID) String() string {
	return id.Kind.Kind + " " + strings.TrimPrefix(id.NamespacedName.String(), "/")
}

// Object is what an object in a member says of itself.
type Object struct {
	ID
	// Work is the Work that it names; zero for none.
	Work types.NamespacedName
	// Owner is whose it is, besides names.
	Owner hubclaim.Ownership
	// Managed says that it has the label of what is managed, Applied that Flotilla
	// applied fields of it, and Leaving that it is being deleted.
	Managed, Applied, Leaving bool
}

// Title names the object, and says if it is being deleted, or holds data that would go with it:
// "ConfigMap shop/web (being deleted)".
func (o *Object) Title() string {
	switch {
	case o.Leaving:
		return o.ID.String() + " (being deleted)"
	case volumes.IsVolumeClaim(o.Kind):
		return o.ID.String() + " (with its data)"
	default:
		return o.ID.String()
	}
}

// Deleting says of an object with these finalizers that it is being deleted, and what keeps it.
func Deleting(finalizers []string) string {
	if blocked := cascade.BlockedBy(finalizers); blocked != "" {
		return "being deleted, " + blocked
	}
	return "being deleted"
}

// Works returns the Works that the object may mean in a cluster: the one that it names, and
// where that is the former name of one, that. What was left when the cluster had another name
// may mean those under the name that it has now, too.
func (o *Object) Works(cluster string) iter.Seq[types.NamespacedName] {
	names := []string{o.Work.Name}
	if now := workv1alpha2.WorkNamed(o.Work.Name, o.Kind.Kind, o.Name, o.Namespace); now != o.Work.Name {
		names = append(names, now)
	}
	namespaces := []string{o.Work.Namespace}
	if o.Elsewhere(cluster) {
		namespaces = append(namespaces, workv1alpha2.ExecutionNamespace(cluster))
	}
	return func(yield func(types.NamespacedName) bool) {
		for _, namespace := range namespaces {
			for _, name := range names {
				if !yield(types.NamespacedName{Namespace: namespace, Name: name}) {
					return
				}
			}
		}
	}
}

// Elsewhere reports whether the Work that the object names is of another cluster, which this
// one may have been: one cluster has one name at a time.
func (o *Object) Elsewhere(cluster string) bool {
	return o.Work.Namespace != workv1alpha2.ExecutionNamespace(cluster)
}

// Suspect reports whether the object is one of this hub's in the cluster, as far as it
// says itself: an orphan if no Work names it, also while it is being deleted. Of one that names a Work of another cluster
// nothing but the hub's own mark is believed.
func (o *Object) Suspect(cluster string, s hubclaim.Standing) bool {
	if !o.Managed || !o.Applied || o.Work.Name == "" {
		return false
	}
	if o.Elsewhere(cluster) {
		_, execution := workv1alpha2.ClusterOfExecutionNamespace(o.Work.Namespace)
		return execution && s.Hub != "" && o.Owner.Hub == s.Hub
	}
	return s.MayRemove(o.Owner, "")
}

// Named reports whether a Work asks for the object, or knows that it is to go; nil is
// no Work. One whose manifests cannot be read names anything.
func Named(work *workv1alpha1.Work, id ID) bool {
	if work == nil {
		return false
	}
	asked := Asked{}
	asked.Add(work)
	return asked.Has(id)
}

// Asked are the objects that Works ask for, or know that they are to go. The zero value of
// ID stands for anything: a manifest that cannot be read.
type Asked map[ID]bool

// Add adds those of a Work.
func (a Asked) Add(work *workv1alpha1.Work) {
	for i := range work.Status.ManifestStatuses {
		of := &work.Status.ManifestStatuses[i].Identifier
		a[ID{schema.GroupKind{Group: of.Group, Kind: of.Kind}, types.NamespacedName{Namespace: of.Namespace, Name: of.Name}}] = true
	}
	for _, manifest := range work.Spec.Workload.Manifests {
		var object metav1.PartialObjectMetadata
		if json.Unmarshal(manifest.Raw, &object) != nil { // as it is sent: case counts
			a[ID{}] = true
			continue
		}
		a[ID{object.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: object.Namespace, Name: object.Name}}] = true
	}
}

// Has reports whether an object is among them, or may be.
func (a Asked) Has(id ID) bool { return a[id] || a[ID{}] }

// Removable reports whether an orphan is removed where somebody says so. Namespaces and
// definitions are not: what others have in them would go as well.
func Removable(id ID) bool {
	return id.Kind != (schema.GroupKind{Kind: "Namespace"}) && id.Kind != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"})
}

// ByPolicy reports whether an orphan is removed where the Cluster's policy says so, and nobody looks at
// each. Claims are not: their data goes only if somebody has seen their names.
func ByPolicy(id ID) bool { return Removable(id) && !volumes.IsVolumeClaim(id.Kind) }

// mostNamed is how many orphans a message names.
const mostNamed = 5

// Kept is why orphans stay although the Cluster's policy would have them removed.
type Kept int

const (
	// KeptByPolicy: it would not.
	KeptByPolicy Kept = iota
	// KeptAsMany: there are too many, see Brakes.
	KeptAsMany
	// KeptAsHeld: the control plane was set back to an older backup, and waits.
	KeptAsHeld
)

// Message describes orphans, of those that hold data first; they come sorted, and there is one at least.
func Message(cluster string, found []Object, kept Kept) string {
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b Object) int {
		switch holds := volumes.IsVolumeClaim(a.Kind); {
		case holds == volumes.IsVolumeClaim(b.Kind):
			return 0
		case holds:
			return -1
		default:
			return 1
		}
	})
	names := make([]string, 0, mostNamed)
	for i := range found[:min(len(found), mostNamed)] {
		names = append(names, found[i].Title())
	}
	text := strings.Join(names, ", ")
	if more := len(found) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	count := fmt.Sprintf("%d objects that no Work names", len(found))
	if len(found) == 1 {
		count = "1 object that no Work names"
	}
	count += ": " + text + "; "
	if kept == KeptAsHeld {
		return count + "the control plane was set back to an older backup, and what was made since is among them: nothing is removed before flotilla resume hub was said"
	}
	if !slices.ContainsFunc(found, func(o Object) bool { return !o.Leaving }) {
		return count + "what is being deleted goes once nothing keeps it there, such as a finalizer"
	}
	out := count + "flotilla prune --cluster " + cluster + " removes what nobody needs"
	if kept == KeptAsMany {
		out += ", as its policy does not for so many at once"
	}
	return out
}

// NamesVolumeClaims reports whether a message names what holds data.
func NamesVolumeClaims(message string) bool {
	return strings.Contains(message, "PersistentVolumeClaim ")
}

// Brakes reports whether so many of all managed objects are not removed by policy
// alone: more than a fifth of them and more than five, or all. A hub that forgot its
// Works would have everything go.
func Brakes(found, all int) bool { return found > 5 && 5*found > all || found >= all }
