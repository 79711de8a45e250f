package fake

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// place is where an object is.
type place struct {
	resource, namespace, name string
}

// stored is an object as it stands. It is never changed, only replaced.
type stored struct {
	version int64
	object  map[string]any
	encoded []byte
	labels  labels.Set
	applied map[string]any // as the applier sent it, without metadata of the server
}

// change is one step in the life of an object: before is nil when it was made,
// after when it was removed.
type change struct {
	version       int64
	at            place
	before, after *stored
}

// history is how many changes are kept for those who watch.
const history = 20000

// store holds the objects of one member.
type store struct {
	mu      sync.Mutex
	version int64
	objects map[place]*stored
	changes []change
	changed chan struct{} // closed at the next change
}

func newStore() *store {
	s := &store{objects: map[place]*stored{}, changed: make(chan struct{})}
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
		s.put(place{resource: "namespaces", name: name}, map[string]any{
			"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": name, "uid": uuid.NewString(), "creationTimestamp": now()},
		}, nil)
	}
	return s
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

func (s *store) get(at place) (*stored, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.objects[at]
	return found, ok
}

// list returns the objects of a resource, in a namespace or in all, and the
// version at which that is so.
func (s *store) list(resource, namespace string, selector labels.Selector) ([]*stored, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var places []place
	for at, found := range s.objects {
		if at.resource == resource && (namespace == "" || at.namespace == namespace) && selector.Matches(found.labels) {
			places = append(places, at)
		}
	}
	slices.SortFunc(places, func(a, b place) int { return int(s.objects[a].version - s.objects[b].version) })
	out := make([]*stored, len(places))
	for i, at := range places {
		out[i] = s.objects[at]
	}
	return out, s.version
}

// apply stores what the only applier of an object wants, and returns what
// became of it: the applier's fields and no others, with the metadata and the
// status that the member gave. What is wanted already changes nothing.
func (s *store) apply(k kind, at place, desired map[string]any, manager string) (*stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.objects[place{resource: "namespaces", name: at.namespace}]; k.namespaced && !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, at.namespace)
	}
	wanted := &unstructured.Unstructured{Object: desired}
	version := wanted.GetResourceVersion()
	unstructured.RemoveNestedField(desired, "metadata", "resourceVersion")
	old := s.objects[at]
	switch {
	case old == nil:
		return s.put(at, made(desired, desired, manager), desired), nil
	case version != "" && version != strconv.FormatInt(old.version, 10):
		return nil, apierrors.NewConflict(schema.GroupResource{Group: k.gvk.Group, Resource: k.resource}, at.name, fmt.Errorf("the object has been modified"))
	case reflect.DeepEqual(old.applied, desired):
		return old, nil
	}
	next := made(desired, desired, manager)
	kept(next, old.object, !reflect.DeepEqual(old.applied["spec"], desired["spec"]))
	return s.put(at, next, desired), nil
}

// made returns a new object with the fields that were applied.
func made(fields, owned map[string]any, manager string) map[string]any {
	out := runtime.DeepCopyJSON(fields)
	obj := &unstructured.Unstructured{Object: out}
	obj.SetUID(types.UID(uuid.NewString()))
	obj.SetGeneration(1)
	metadata := out["metadata"].(map[string]any)
	metadata["creationTimestamp"] = now()
	metadata["managedFields"] = []any{map[string]any{
		"manager": manager, "operation": string(metav1.ManagedFieldsOperationApply), "apiVersion": obj.GetAPIVersion(),
		"time": now(), "fieldsType": "FieldsV1", "fieldsV1": fieldsOf(owned),
	}}
	return out
}

// kept carries over to next what stays of an object when it is changed.
func kept(next, old map[string]any, edited bool) {
	was, is := &unstructured.Unstructured{Object: old}, &unstructured.Unstructured{Object: next}
	is.SetUID(was.GetUID())
	is.SetGeneration(was.GetGeneration())
	if edited {
		is.SetGeneration(was.GetGeneration() + 1)
	}
	is.SetCreationTimestamp(was.GetCreationTimestamp())
	if status, ok := old["status"]; ok {
		next["status"] = status
	}
}

// fieldsOf returns the set of fields of an applied object, as managedFields
// shows it. Lists are one field each.
func fieldsOf(object map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range object {
		switch child := value.(type) {
		case map[string]any:
			out["f:"+name] = fieldsOf(child)
		default:
			out["f:"+name] = map[string]any{}
		}
	}
	for _, identity := range []string{"f:apiVersion", "f:kind"} {
		delete(out, identity)
	}
	if metadata, ok := out["f:metadata"].(map[string]any); ok {
		delete(metadata, "f:name")
		delete(metadata, "f:namespace")
	}
	return out
}

// report writes the status of an object that is there.
func (s *store) report(at place, status func(object map[string]any) map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.objects[at]
	if !ok {
		return
	}
	next := status(old.object)
	if reflect.DeepEqual(next, old.object["status"]) {
		return
	}
	object := maps.Clone(old.object)
	object["metadata"] = maps.Clone(object["metadata"].(map[string]any))
	object["status"] = next
	s.put(at, object, old.applied)
}

// remove deletes an object, if it is the one with that UID; an empty one means
// any.
func (s *store) remove(k kind, at place, uid types.UID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.objects[at]
	group := schema.GroupResource{Group: k.gvk.Group, Resource: k.resource}
	if !ok {
		return apierrors.NewNotFound(group, at.name)
	}
	if is := (&unstructured.Unstructured{Object: old.object}).GetUID(); uid != "" && uid != is {
		return apierrors.NewConflict(group, at.name, fmt.Errorf("the UID in the precondition is %s, the object's is %s", uid, is))
	}
	delete(s.objects, at)
	s.version++
	gone := maps.Clone(old.object)
	gone["metadata"] = maps.Clone(gone["metadata"].(map[string]any))
	s.record(change{version: s.version, at: at, before: s.seal(gone, nil)})
	return nil
}

// put stores an object and sends it to those who watch. The caller holds the lock,
// but for a store that nobody knows yet.
func (s *store) put(at place, object, applied map[string]any) *stored {
	s.version++
	next := s.seal(object, applied)
	s.record(change{version: s.version, at: at, before: s.objects[at], after: next})
	s.objects[at] = next
	return next
}

// seal gives an object the present version and encodes it.
func (s *store) seal(object, applied map[string]any) *stored {
	obj := &unstructured.Unstructured{Object: object}
	obj.SetResourceVersion(strconv.FormatInt(s.version, 10))
	encoded, err := json.Marshal(object)
	if err != nil {
		panic(err) // it was JSON before
	}
	return &stored{version: s.version, object: object, encoded: encoded, labels: obj.GetLabels(), applied: applied}
}

func (s *store) record(c change) {
	s.changes = append(s.changes, c)
	if len(s.changes) > 2*history {
		s.changes = slices.Clone(s.changes[history:])
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// since returns the changes after a version, and what is closed at the next
// one. It is false where they are not kept any more.
func (s *store) since(version int64) ([]change, <-chan struct{}, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, _ := slices.BinarySearchFunc(s.changes, version+1, func(c change, v int64) int { return int(c.version - v) })
	if at == 0 && len(s.changes) > 0 && s.changes[0].version > version+1 {
		return nil, nil, false
	}
	return slices.Clone(s.changes[at:]), s.changed, true
}

// seen returns what a watch sees of a change; nothing where the object neither
// is nor was among those that the request is about.
func (c change) seen(r request) (watch.EventType, *stored) {
	if c.at.resource != r.kind.resource || (r.namespace != "" && c.at.namespace != r.namespace) {
		return "", nil
	}
	was := c.before != nil && r.selector.Matches(c.before.labels)
	is := c.after != nil && r.selector.Matches(c.after.labels)
	switch {
	case is && was:
		return watch.Modified, c.after
	case is:
		return watch.Added, c.after
	case was && c.after != nil:
		return watch.Deleted, c.after
	case was:
		return watch.Deleted, c.before
	default:
		return "", nil
	}
}
