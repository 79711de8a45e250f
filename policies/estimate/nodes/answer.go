package nodes

import (
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Most returns how many units fit by all plugins; MaxInt32 where none knows a bound.
func Most(x *Index, ask *Ask, plugins ...Plugin) int32 {
	most := int64(math.MaxInt64)
	for _, p := range plugins {
		most = min(most, p.Most(x, ask))
	}
	return bounded(most)
}

// Unschedulable returns how many pods of a workload wait since so long, or longer, for
// a node in vain. They are the workload's if it controls them, or one of its
// ReplicaSets does; of several of these, it is the pods of that which made the latest
// one.
func (x *Index) Unschedulable(of workv1alpha2.ObjectReference, threshold time.Duration, now time.Time) int32 {
	var latest *Pod
	var own []*Pod
	for _, p := range x.waiting {
		if p.Namespace != of.Namespace || !p.Owner.isOf(&of) {
			continue
		}
		own = append(own, p)
		if latest == nil || p.Created.After(latest.Created) || p.Created.Equal(latest.Created) && p.Owner.Name > latest.Owner.Name {
			latest = p
		}
	}
	var n int64
	for _, p := range own {
		if p.Owner == latest.Owner && since(p.Waits, now, threshold) {
			n++
		}
	}
	return bounded(n)
}

// isOf reports whether the controller is the workload, or a ReplicaSet of it.
func (o *Owner) isOf(of *workv1alpha2.ObjectReference) bool {
	is := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind()
	if is == schema.FromAPIVersionAndKind(of.APIVersion, of.Kind).GroupKind() {
		return o.Name == of.Name
	}
	if is.Kind != "ReplicaSet" || o.Template == "" {
		return false
	}
	name, cut := strings.CutSuffix(o.Name, "-"+o.Template)
	return cut && name == of.Name
}
