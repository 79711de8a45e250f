package guard

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/cascade"
)

// untilLeft is how soon what waits for what else leaves is looked at again at the latest.
const untilLeft = 10 * time.Second

// Again returns when to look again at what was to be looked at after so long.
func (r *Refusal) Again(after time.Duration) time.Duration {
	if r.Waits() {
		return min(after, untilLeft)
	}
	return after
}

// own is what this hub has in what is to be deleted, and means to keep for now.
type own struct {
	titles  []string
	explain string
}

func (o *own) none() bool { return len(o.titles) == 0 }

// add takes an object, and reports whether it is this hub's and stays: its Work is there and not being deleted.
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

// refusal says that it is waited for.
func (o *own) refusal(r *Removal) *Refusal {
	waits := "in it"
	if Defines(r.Kind.GroupKind()) {
		waits = "of its kind"
	}
	return &Refusal{title: r.Title, contents: cascade.Describe(o.titles), waits: waits, explain: o.explain}
}
