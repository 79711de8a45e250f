package situation

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// onItsWay is how long it may take until bindings report clusters that do not have the last edit.
const onItsWay = time.Minute

// edited no longer counts a template as ready in clusters that report an earlier version, if it was edited a
// moment ago: its binding does not show that yet.
func edited(s *Survey, obj *metav1.PartialObjectMetadata, id inventory.ID, found *reach) {
	if len(found.seen) == 0 || s.now.Sub(lastEdit(obj)) >= onItsWay {
		return
	}
	var behind []string
	found.ready = slices.DeleteFunc(found.ready, func(cluster string) bool {
		g := found.seen[cluster]
		if g == 0 || g >= obj.Generation {
			return false
		}
		s.members.of(cluster).Ready--
		behind = append(behind, cluster)
		return true
	})
	if len(behind) == 0 {
		return
	}
	if found.counted {
		s.fleet.Templates.Ready--
		found.counted = false
	}
	p := Problem{State: Progressing, Group: id.GroupKind.Group, Kind: id.GroupKind.Kind, Namespace: id.Namespace, Name: id.Name, Message: rollup.NotSeen, Clusters: behind}
	p.Next = templateNext(p)
	s.problem(p)
}

// lastEdit returns when something other than a status was last written; zero if managedFields do not say.
func lastEdit(obj *metav1.PartialObjectMetadata) time.Time {
	var last time.Time
	for _, f := range obj.ManagedFields {
		if f.Subresource == "" && f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}
