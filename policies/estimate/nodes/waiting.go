package nodes

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Waiting is the pods of one controller that the scheduler of their cluster finds no node for.
type Waiting struct {
	Namespace string
	Owner     Owner
	// Created is when the latest of them was made.
	Created time.Time
	// Since is since when each of them waits, the longest first.
	Since []time.Time
}

// WaitingIn returns all that waits for a node in vain, by the controllers, in a stable order.
// Pods that nobody controls are left out.
func WaitingIn(x *Index) []Waiting {
	return waitingOf(x, func(p *Pod) bool { return p.Owner != Owner{} })
}

func waitingOf(x *Index, counts func(*Pod) bool) []Waiting {
	type controller struct {
		namespace string
		owner     Owner
	}
	by := map[controller]*Waiting{}
	for _, p := range x.waiting {
		if !counts(p) {
			continue
		}
		key := controller{p.Namespace, p.Owner}
		w := by[key]
		if w == nil {
			w = &Waiting{Namespace: p.Namespace, Owner: p.Owner, Created: p.Created}
			by[key] = w
		}
		w.Since = append(w.Since, p.Waits)
		if p.Created.After(w.Created) {
			w.Created = p.Created
		}
	}
	out := make([]Waiting, 0, len(by))
	for w := range maps.Values(by) {
		slices.SortFunc(w.Since, time.Time.Compare)
		out = append(out, *w)
	}
	slices.SortFunc(out, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Owner.Name, b.Owner.Name),
			cmp.Compare(a.Owner.Kind, b.Owner.Kind), cmp.Compare(a.Owner.APIVersion, b.Owner.APIVersion), cmp.Compare(a.Owner.Template, b.Owner.Template))
	})
	return out
}

// Of reports whether the pods are the workload's: it controls them, or a ReplicaSet of it does.
func (w *Waiting) Of(of *workv1alpha2.ObjectReference) bool {
	return w.Namespace == of.Namespace && w.Owner.isOf(of)
}

// Workload returns the name of what the pods are of, where a ReplicaSet of it controls them;
// otherwise empty.
func (w *Waiting) Workload() string {
	name, _ := w.Owner.workload()
	return name
}

// Latest returns what waits of a workload, of all that is the workload's: of several
// ReplicaSets, the pods of that which made the latest one. Nil: nothing waits.
func Latest(own []Waiting) *Waiting {
	var latest *Waiting
	for i := range own {
		w := &own[i]
		if latest == nil || w.Created.After(latest.Created) || w.Created.Equal(latest.Created) && w.Owner.Name > latest.Owner.Name {
			latest = w
		}
	}
	return latest
}

// Unschedulable returns how many pods of a workload wait since so long, or longer, for a node
// in vain; see Latest.
func (x *Index) Unschedulable(of workv1alpha2.ObjectReference, threshold time.Duration, now time.Time) int32 {
	own := Latest(waitingOf(x, func(p *Pod) bool { return p.Namespace == of.Namespace && p.Owner.isOf(&of) }))
	if own == nil {
		return 0
	}
	var n int64
	for _, at := range own.Since {
		if since(at, now, threshold) {
			n++
		}
	}
	return bounded(n)
}

// isOf reports whether the controller is the workload, or a ReplicaSet of it.
func (o *Owner) isOf(of *workv1alpha2.ObjectReference) bool {
	if schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind() == schema.FromAPIVersionAndKind(of.APIVersion, of.Kind).GroupKind() {
		return o.Name == of.Name
	}
	name, ok := o.workload()
	return ok && name == of.Name
}

// workload returns the name of what has made a ReplicaSet.
func (o *Owner) workload() (string, bool) {
	if o.Kind != "ReplicaSet" || o.Template == "" {
		return "", false
	}
	return strings.CutSuffix(o.Name, "-"+o.Template)
}
