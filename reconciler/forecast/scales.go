package forecast

import (
	"errors"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/cascadingdeletion"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// scales weigh what a Kustomization loses.
type scales struct{ *course }

// reasonOf returns the refusal of the brake that an error is; nil for any other.
func reasonOf(err error) *inventory.Refusal {
	var refused *inventory.Refusal
	if errors.As(err, &refused) {
		return refused
	}
	return nil
}

// removal is what a Kustomization loses by the revision, for the brake.
func (c scales) removal(key client.ObjectKey) cascadingdeletion.Removal {
	m, _ := c.applies(key)
	l := c.leaving[key]
	owned := c.before.Owned[key]
	return cascadingdeletion.Removal{
		Of: c.alive[key], Revision: c.revision.name(), Owned: owned, Deleted: l.Deleted, Desired: m.entries, Stays: l.Staying(),
		May: c.allowance(c.alive[key], owned, m.entries),
	}
}

// losses counts what is deleted with each of the objects. What is in a namespace, or of a kind, is not all known here:
// it counts as something.
func (c scales) losses(entries []inventory.Entry) []inventory.Loss {
	going := map[inventory.ID]bool{}
	for _, e := range entries {
		going[e.ID] = true
	}
	out := make([]inventory.Loss, len(entries))
	for i, e := range entries {
		reach := c.reach(e, going)
		out[i] = inventory.Loss{ID: e.ID, Within: len(reach) + c.inside(e.ID, going), Precious: inventory.PreciousKind(e.ID.GroupKind) != ""}
		for _, reached := range reach {
			out[i].Within += c.inside(reached.ID, going)
			if inventory.IsWorkload(reached.ID) {
				out[i].Runs++
			}
			if inventory.PreciousKind(reached.ID.GroupKind) != "" {
				out[i].Precious, out[i].Contained = true, append(out[i].Contained, reached.ID)
			}
		}
	}
	return out
}

// reach returns what is deleted with a Kustomization, and adds it to going.
func (c scales) reach(e inventory.Entry, going map[inventory.ID]bool) []inventory.Entry {
	var out []inventory.Entry
	for _, key := range siblings.KeysIn([]inventory.Entry{e}) {
		if !c.gone[key] {
			continue
		}
		for _, owned := range c.leaving[key].Deleted {
			if going[owned.ID] {
				continue
			}
			going[owned.ID] = true
			out = append(append(out, owned), c.reach(owned, going)...)
		}
	}
	return out
}

// inside counts the objects in a Namespace that are known.
func (c scales) inside(id inventory.ID, going map[inventory.ID]bool) int {
	if id.GroupKind.Kind != "Namespace" || id.GroupKind.Group != "" {
		return 0
	}
	n := 0
	for other, obj := range c.before.Objects {
		if obj != nil && other.Namespace == id.Name && !going[other] {
			n++
		}
	}
	return n
}

// brake returns the text of the brake if it closes; empty if it does not.
func (c scales) brake(key client.ObjectKey) string {
	r := c.removal(key)
	dropped := inventory.WithoutRegenerated(r.Deleted, r.Desired)
	if len(dropped) == 0 {
		return ""
	}
	if refused := reasonOf(r.Judge(c.Brake, len(r.Owned), dropped, c.losses(slices.Clone(dropped)))); refused != nil {
		return c.revision.words(refused.Error())
	}
	return ""
}
