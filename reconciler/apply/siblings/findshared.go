package siblings

import (
	"context"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// SharedQuery is a revision that is about to be applied.
type SharedQuery struct {
	// Of is the Kustomization.
	Of *kustomizev1.Kustomization
	// At is the artifact.
	At Artifact
	// Changes are what the revision would do, object by object, and Added the objects that the one before did not have.
	Changes []applier.Change
	Added   []inventory.Entry
}

// SharedObjects is what others hold of a revision.
type SharedObjects struct {
	// Shared are the objects that others hold, for which the revision is refused.
	Shared []Shared
	// Takes are the indexes of the changes to objects that are otherwise left as they are, and whose labels are to be taken over.
	Takes []int
	// Borrows says that there is one whose labels are not.
	Borrows bool
}

// FindShared returns what others hold of a revision, by an index of what they want. Errors come from the control plane or the
// context.
func FindShared(ctx context.Context, index *Index, q SharedQuery) (SharedObjects, error) {
	var out SharedObjects
	var unheld []inventory.Entry
	added := map[inventory.ID]inventory.Entry{}
	for _, e := range q.Added {
		added[e.ID] = e
	}
	var upcoming []*kustomizev1.Kustomization // with the spec that this very revision gives them
	for _, c := range q.Changes {
		if c.Writes() {
			upcoming = append(upcoming, ChildrenIn([]*unstructured.Unstructured{c.Desired})...)
		}
	}
	own, nobody := client.ObjectKeyFromObject(q.Of), client.ObjectKey{}
	for i, c := range q.Changes {
		id := inventory.IDOf(c.Desired)
		switch e, isNew := added[id]; {
		case c.Relabels && c.Owner != nobody && c.Owner != own:
			claim, err := index.ClaimOf(ctx, q.Of, q.At, id, c.Owner, upcoming...)
			if err != nil {
				return out, err
			}
			if claim != GaveUp {
				out.Borrows = true
				continue
			}
			out.Takes = append(out.Takes, i)
		case c.Shares:
		case c.Owner == nobody && isNew:
			unheld = append(unheld, e)
		case c.Owner != nobody && c.Owner != own:
			claim, err := index.ClaimOf(ctx, q.Of, q.At, id, c.Owner, upcoming...)
			if err != nil {
				return out, err
			}
			if claim == Holds {
				out.Shared = append(out.Shared, Shared{ID: id, With: c.Owner})
			}
		}
	}
	earlier, err := index.Earlier(ctx, q.Of, q.At, unheld, upcoming...)
	out.Shared = append(out.Shared, earlier...)
	return out, err
}
