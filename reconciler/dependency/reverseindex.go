package dependency

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// reverseIndex knows which templates need what. It is safe for use by several
// goroutines.
type reverseIndex struct {
	mu      sync.RWMutex
	entries map[dependency.Ref]*entry
	// asked are the users whose needs are being evaluated. What changes
	// meanwhile may concern them.
	asked map[dependency.Ref]bool
	// named has the users of an object by its name, wide those that find objects
	// of a kind and namespace by labels.
	named, wide map[object]map[dependency.Ref]bool
	// refused has those that may not have an object, crossNamespace those that refer to
	// anything outside of their namespace.
	refused        map[object]map[dependency.Ref]bool
	crossNamespace map[dependency.Ref]bool
}

// entry is what is known of one user. It is not changed once it is in the reverse index.
type entry struct {
	dependency.User
	// known is false where it is not known yet what the user needs.
	known bool
	// deps are what its needs were read from.
	deps []kinds.Dependency
	// refused is what it refers to besides, and may not have.
	refused []kinds.Dependency
}

// object names an object in whatever version; without a name, all of the kind.
type object struct {
	schema.GroupKind
	namespace, name string
}

func newReverseIndex() *reverseIndex {
	index := func() map[object]map[dependency.Ref]bool { return map[object]map[dependency.Ref]bool{} }
	return &reverseIndex{entries: map[dependency.Ref]*entry{}, asked: map[dependency.Ref]bool{}, named: index(), wide: index(), refused: index(), crossNamespace: map[dependency.Ref]bool{}}
}

// ask records that a user's needs are about to be evaluated, until put or drop.
func (x *reverseIndex) ask(ref dependency.Ref) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.asked[ref] = true
}

// follows reports whether what changes of a user's template is to be looked at.
func (x *reverseIndex) follows(ref dependency.Ref) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.asked[ref] || x.entries[ref] != nil
}

// put stores the entry of a user and returns the previous one; nil if there
// was none.
func (x *reverseIndex) put(e *entry) *entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.remove(e.Ref)
	x.entries[e.Ref] = e
	for i := range e.Needs {
		index, at := x.index(&e.Needs[i])
		enlist(index, at, e.Ref)
	}
	for _, d := range e.refused {
		enlist(x.refused, objectOf(d), e.Ref)
	}
	if len(e.refused) > 0 || dependency.Foreign(e.Namespace, e.deps) {
		x.crossNamespace[e.Ref] = true
	}
	return before
}

func enlist(index map[object]map[dependency.Ref]bool, at object, ref dependency.Ref) {
	if index[at] == nil {
		index[at] = map[dependency.Ref]bool{}
	}
	index[at][ref] = true
}

func strike(index map[object]map[dependency.Ref]bool, at object, ref dependency.Ref) {
	if delete(index[at], ref); len(index[at]) == 0 {
		delete(index, at)
	}
}

func objectOf(d kinds.Dependency) object {
	return object{schema.FromAPIVersionAndKind(d.APIVersion, d.Kind).GroupKind(), d.Namespace, d.Name}
}

// drop removes the entry of a user and returns it; nil if there was none.
func (x *reverseIndex) drop(ref dependency.Ref) *entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.remove(ref)
}

func (x *reverseIndex) remove(ref dependency.Ref) *entry {
	delete(x.asked, ref)
	before := x.entries[ref]
	if before == nil {
		return nil
	}
	delete(x.entries, ref)
	for i := range before.Needs {
		index, at := x.index(&before.Needs[i])
		strike(index, at, ref)
	}
	for _, d := range before.refused {
		strike(x.refused, objectOf(d), ref)
	}
	delete(x.crossNamespace, ref)
	return before
}

func (x *reverseIndex) index(n *dependency.Need) (map[object]map[dependency.Ref]bool, object) {
	at := object{n.GroupKind(), n.Namespace, n.Name}
	if n.Name == "" {
		return x.wide, at
	}
	return x.named, at
}

// get returns the entry of a user; nil if there is none.
func (x *reverseIndex) get(ref dependency.Ref) *entry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.entries[ref]
}

// concerns reports whether anybody may need an object, going by all but its labels.
func (x *reverseIndex) concerns(key templatestore.Key) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.named[object{key.GroupKind(), key.Namespace, key.Name}]) > 0 || len(x.wide[object{key.GroupKind(), key.Namespace, ""}]) > 0
}

// refusedOf returns those that may not have an object that they refer to, and those
// that are asked.
func (x *reverseIndex) refusedOf(key templatestore.Key) []dependency.Ref {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.withAsked(maps.Keys(x.refused[object{key.GroupKind(), key.Namespace, key.Name}]))
}

// withAsked returns users and those that are asked, each once.
func (x *reverseIndex) withAsked(users iter.Seq[dependency.Ref]) []dependency.Ref {
	all := maps.Clone(x.asked)
	for ref := range users {
		all[ref] = true
	}
	return slices.Collect(maps.Keys(all))
}

// crossNamespaceUsers returns the users that refer to another namespace, and those that
// are being asked, as nobody knows yet what these refer to.
func (x *reverseIndex) crossNamespaceUsers() []dependency.Ref {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.withAsked(maps.Keys(x.crossNamespace))
}

// crossNamespaceUsersOf returns the users from other namespaces that refer to something in
// a namespace, and those that are being asked.
func (x *reverseIndex) crossNamespaceUsersOf(namespace string) []dependency.Ref {
	x.mu.RLock()
	defer x.mu.RUnlock()
	there := func(d kinds.Dependency) bool { return d.Namespace == namespace }
	return x.withAsked(func(yield func(dependency.Ref) bool) {
		for ref := range x.crossNamespace {
			e := x.entries[ref]
			goes := e.Namespace != namespace && (slices.ContainsFunc(e.deps, there) || slices.ContainsFunc(e.refused, there))
			if goes && !yield(ref) {
				return
			}
		}
	})
}

// usersOf returns those that need r.
func (x *reverseIndex) usersOf(r selector.Resource) []dependency.User {
	x.mu.RLock()
	defer x.mu.RUnlock()
	gk := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()
	var out []dependency.User
	for ref := range x.named[object{gk, r.Namespace, r.Name}] {
		out = append(out, x.entries[ref].User)
	}
	for ref := range x.wide[object{gk, r.Namespace, ""}] {
		e := x.entries[ref]
		if !x.named[object{gk, r.Namespace, r.Name}][ref] && e.Means(r) {
			out = append(out, e.User)
		}
	}
	return out
}

// same reports whether two entries mean the same for the bindings of what is needed.
func (e *entry) same(other *entry) bool {
	return other != nil && e.known == other.known && e.ID == other.ID && slices.Equal(e.Clusters, other.Clusters) &&
		e.Administered == other.Administered && e.Overwrites == other.Overwrites && e.Preserves == other.Preserves && e.Reports == other.Reports &&
		equality.Semantic.DeepEqual(e.deps, other.deps)
}

// mayNeed reports whether the user needs the object under key; where obj is nil, and
// its labels thus are not known, whether it could.
func (e *entry) mayNeed(key templatestore.Key, obj *unstructured.Unstructured) bool {
	if obj != nil {
		return e.Means(selector.ResourceOf(obj))
	}
	return slices.ContainsFunc(e.Needs, func(n dependency.Need) bool {
		return n.GroupKind() == key.GroupKind() && n.Namespace == key.Namespace && (n.Name == "" || n.Name == key.Name)
	})
}

// kinds returns the kinds that the user needs, each of them once.
func (e *entry) kinds() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for i := range e.Needs {
		if gvk := e.Needs[i].GroupVersionKind; !slices.Contains(out, gvk) {
			out = append(out, gvk)
		}
	}
	return out
}
