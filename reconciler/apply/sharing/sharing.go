// Package sharing finds out which objects of a revision other Kustomizations of its source hold as well: two that apply one
// object overwrite each other at each interval, and both are green.
//
// In go what a revision would change, with the Kustomizations that the labels of objects name; out come the objects that
// others hold, and those whose labels may be taken over. The package writes nothing.
package sharing

import (
	"context"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Query is a revision that is about to be applied.
type Query struct {
	// Of is the Kustomization.
	Of *kustomizev1.Kustomization
	// At is the artifact.
	At siblings.Artifact
	// Changes are what the revision would do, object by object, and Added the objects that the one before did not have.
	Changes []applier.Change
	Added   []inventory.Entry
}

// Found is what others hold of a revision.
type Found struct {
	// Shared are the objects that others hold, for which the revision is refused.
	Shared []siblings.Shared
	// Takes are the indexes of the changes to objects that are otherwise left as they are, and whose labels are to be taken over.
	Takes []int
	// Borrows says that there is one whose labels are not.
	Borrows bool
}

// Find returns what others hold of a revision, by an index of what they want. Errors come from the control plane or the
// context.
func Find(ctx context.Context, index *siblings.Index, q Query) (Found, error) {
	var out Found
	var unheld []inventory.Entry
	added := map[inventory.ID]inventory.Entry{}
	for _, e := range q.Added {
		added[e.ID] = e
	}
	own, nobody := client.ObjectKeyFromObject(q.Of), client.ObjectKey{}
	for i, c := range q.Changes {
		id := inventory.IDOf(c.Desired)
		switch e, isNew := added[id]; {
		case c.Relabels && c.Owner != nobody && c.Owner != own:
			gaveUp, err := index.GaveUp(ctx, q.Of, q.At, id, c.Owner)
			if err != nil {
				return out, err
			}
			if !gaveUp {
				out.Borrows = true
				continue
			}
			out.Takes = append(out.Takes, i)
		case c.Shares:
		case c.Owner == nobody && isNew:
			unheld = append(unheld, e)
		case c.Owner != nobody && c.Owner != own:
			wanted, err := index.WantedBy(ctx, q.Of, q.At, id, c.Owner)
			if err != nil {
				return out, err
			}
			if wanted {
				out.Shared = append(out.Shared, siblings.Shared{ID: id, With: c.Owner})
			}
		}
	}
	earlier, err := index.Earlier(ctx, q.Of, q.At, unheld)
	out.Shared = append(out.Shared, earlier...)
	return out, err
}
