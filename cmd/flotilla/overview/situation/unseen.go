package situation

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// onItsWay is how long an edit may be on its way until bindings report clusters that do not take it up.
const onItsWay = time.Minute

// edited takes back that a template is ready in clusters which report an earlier version, where it was edited a
// moment ago: the binding does not say so yet.
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

// lastEdit is when something other than a status was written last; zero where nobody says so.
func lastEdit(obj *metav1.PartialObjectMetadata) time.Time {
	var last time.Time
	for _, f := range obj.ManagedFields {
		if f.Subresource == "" && f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}
