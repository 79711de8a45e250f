package ownermeta

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Names identify an object.
type Names struct {
	Kind schema.GroupVersionKind
	Key  types.NamespacedName
}

// Identify parses only the identity of a manifest's object. As in the API server, the names of
// fields are case-sensitive, and of duplicate fields the last one counts.
func Identify(raw []byte) (Names, error) {
	var object struct {
		APIVersion *string         `json:"apiVersion"`
		Kind       *string         `json:"kind"`
		Metadata   json.RawMessage `json:"metadata"`
	}
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		return Names{}, err
	}
	var named struct {
		Namespace *string `json:"namespace"`
		Name      *string `json:"name"`
	}
	if len(object.Metadata) > 0 {
		if err := utiljson.Unmarshal(object.Metadata, &named); err != nil {
			return Names{}, fmt.Errorf("metadata: %w", err)
		}
	}
	return Names{
		Kind: schema.FromAPIVersionAndKind(ptr.Deref(object.APIVersion, ""), ptr.Deref(object.Kind, "")),
		Key:  types.NamespacedName{Namespace: ptr.Deref(named.Namespace, ""), Name: ptr.Deref(named.Name, "")},
	}, nil
}

// Former returns the name that a Work had under the former naming scheme; zero for a Work
// whose name does not follow the present one. The first manifest is that of the template.
func Former(work *workv1alpha1.Work) client.ObjectKey {
	if len(work.Spec.Workload.Manifests) == 0 {
		return client.ObjectKey{}
	}
	id, err := Identify(work.Spec.Workload.Manifests[0].Raw)
	if err != nil || workv1alpha2.WorkName(id.Kind.Kind, id.Key.Name, id.Key.Namespace) != work.Name {
		return client.ObjectKey{}
	}
	return client.ObjectKey{Namespace: work.Namespace, Name: workv1alpha2.FormerWorkName(id.Kind.Kind, id.Key.Name, id.Key.Namespace)}
}

// Renames holds the Works whose objects in the member still have the Works' former names. The zero value
// is ready, and safe for use by several goroutines.
type Renames struct {
	mu  sync.Mutex
	now map[client.ObjectKey]client.ObjectKey // by former name
}

// Note records that an object has the former name of a Work, by which its events
// come. An empty name means that the Work's objects have none any more.
func (r *Renames) Note(former, work client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case former.Name != "" && r.now == nil:
		r.now = map[client.ObjectKey]client.ObjectKey{former: work}
	case former.Name != "":
		r.now[former] = work
	case len(r.now) > 0:
		maps.DeleteFunc(r.now, func(_, now client.ObjectKey) bool { return now == work })
	}
}

// Now returns the Work that had the former name; none if ok is false.
func (r *Renames) Now(former client.ObjectKey) (work client.ObjectKey, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	work, ok = r.now[former]
	return work, ok
}

// Forget drops what is recorded of a Work: its objects have its name, or it is gone.
func (r *Renames) Forget(work client.ObjectKey) { r.Note(client.ObjectKey{}, work) }
