package cascadeguard

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/cascade"
)

// untilLeft is the longest pause before looking again whether what has to leave first has left.
const untilLeft = 10 * time.Second

// Again returns how long to wait before the next try, given the wait of other errors.
func (r *Refusal) Again(after time.Duration) time.Duration {
	if r.Waits() {
		return min(after, untilLeft)
	}
	return after
}

// own are the objects of this hub that would be deleted along, and that it does not delete itself.
type own struct {
	titles  []string
	explain string
}

func (o *own) none() bool { return len(o.titles) == 0 }

// add adds an object if it is this hub's and stays, as its Work exists and is not being deleted. It reports whether it
// did.
func (o *own) add(ctx context.Context, g *Guard, r *Removal, kind schema.GroupKind, obj metav1.Object) bool {
	work := g.workOf(ctx, r, obj)
	if r.Leaving || work == nil || !work.DeletionTimestamp.IsZero() {
		return false
	}
	if o.none() {
		if o.explain = "flotilla explain " + strings.ToLower(kind.Kind) + "/" + obj.GetName(); obj.GetNamespace() != "" {
			o.explain += " -n " + obj.GetNamespace()
		}
	}
	if len(o.titles) <= cascade.Most {
		o.titles = append(o.titles, cascade.Title(kind.Kind, obj, cascade.Within{Kind: Defines(r.Kind.GroupKind())}))
	}
	return true
}

// refusal returns the Refusal that waits until these objects have left.
func (o *own) refusal(r *Removal) *Refusal {
	waits := "in it"
	if Defines(r.Kind.GroupKind()) {
		waits = "of its kind"
	}
	return &Refusal{title: r.Title, contents: cascade.Describe(o.titles), waits: waits, explain: o.explain}
}
