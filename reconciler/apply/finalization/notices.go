package finalization

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// ReasonDeleted is the reason of the event about what is deleted along with a Kustomization.
const ReasonDeleted = "Deleted"

// mostListed is how many objects an event about an end names: nothing else says later where one went.
const mostListed = 10

// Notice is an event about the end of a Kustomization.
type Notice struct{ Type, Reason, Message string }

// Notices returns the events about what a run has found out and done.
func (e Ending) Notices(of *kustomizev1.Kustomization) []Notice {
	var out []Notice
	add := func(kind, reason, message string) {
		if message != "" {
			out = append(out, Notice{kind, reason, message})
		}
	}
	add(corev1.EventTypeWarning, meta.PruneFailedReason, e.Stays)
	at := of.Status.LastAppliedRevision
	if at == "" {
		at = "unknown"
	}
	if len(e.Deleted) > 0 {
		add(corev1.EventTypeNormal, ReasonDeleted, fmt.Sprintf("%s%s: %d deleted: %s", DeletedWith, at, len(e.Deleted), named(e.Deleted)))
	}
	if !e.Gone {
		return out
	}
	add(corev1.EventTypeNormal, siblings.ReasonHandingOver, e.inherited(at))
	add(corev1.EventTypeNormal, siblings.ReasonHandingOver, e.Anew)
	return out
}

// DeletedWith and HandedOver begin the messages of the events about what goes with a Kustomization, and what others have taken of it;
// its last revision follows.
const (
	DeletedWith = "Deleted with this Kustomization, at revision "
	HandedOver  = "Left to others by this Kustomization, which had applied revision "
)

// inherited says who has taken over what.
func (e Ending) inherited(at string) string {
	by := map[string][]inventory.ID{}
	for id, successor := range e.Successors {
		name := siblings.Name(successor, e.Within)
		by[name] = append(by[name], id)
	}
	var parts []string
	for name, ids := range by {
		parts = append(parts, fmt.Sprintf("Kustomization %s has %s", name, named(ids)))
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return HandedOver + at + ": " + strings.Join(parts, "; ")
}

// named names objects, those that run first.
func named(ids []inventory.ID) string {
	ids = slices.SortedFunc(slices.Values(ids), func(a, b inventory.ID) int {
		switch runs := inventory.IsWorkload(a); {
		case runs == inventory.IsWorkload(b):
			return strings.Compare(inventory.Describe(a), inventory.Describe(b))
		case runs:
			return -1
		default:
			return 1
		}
	})
	return inventory.First(ids, mostListed)
}

// deleted are those of the entries that are deleted after an attempt that ended with an error, or none.
func deleted(entries []inventory.Entry, err error) []inventory.ID {
	refusal := (*applier.Refusal)(nil)
	if err != nil && !errors.As(err, &refusal) {
		return nil
	}
	var stay []string
	if refusal != nil {
		for _, f := range refusal.Findings {
			stay = append(stay, f.Object)
		}
	}
	return slices.DeleteFunc(inventory.IDsOf(entries), func(id inventory.ID) bool { return slices.Contains(stay, inventory.Describe(id)) })
}

// successorsOf says who holds what is not there with the labels of its Kustomization any more, or was taken since it was looked at.
func successorsOf(owned []inventory.Entry, seen applier.Observed, answer siblings.Answer) map[inventory.ID]client.ObjectKey {
	out := map[inventory.ID]client.ObjectKey{}
	for _, e := range owned {
		if successor, inherited := answer.Successors[e.ID]; inherited && (seen[e.ID] == nil || answer.Taken[e.ID]) {
			out[e.ID] = successor
		}
	}
	return out
}
