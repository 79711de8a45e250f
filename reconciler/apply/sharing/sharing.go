// Package sharing finds out which objects of a revision other Kustomizations hold as well: two that apply one object
// overwrite each other at each interval, and both are green.
//
// In go what a revision would change, with the Kustomizations that the labels of objects name; out come the objects that
// others hold, and those whose labels may be taken over. Labels alone say nothing, as whoever may write an object chooses
// them. The package writes nothing.
package sharing

import (
	"context"
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Finder finds what is shared.
type Finder struct {
	// Hub reads from a cache.
	Hub client.Reader
	// Siblings knows what others of the source want.
	Siblings *siblings.Index
	// Privileged reports whether a Kustomization acts with the control plane's own rights.
	Privileged func(ks *kustomizev1.Kustomization) bool
}

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
	// Shared are the objects that others hold, for which the revision is refused; Sources are where these others come from,
	// besides the source of the revision.
	Shared  []siblings.Shared
	Sources []client.ObjectKey
	// Takes are the indexes of the changes to objects that are otherwise left as they are, and whose labels are to be taken over.
	// Borrows says that there is one whose labels are not.
	Takes   []int
	Borrows bool
}

// Find returns what others hold of a revision. Errors come from the control plane or the context.
func (f Finder) Find(ctx context.Context, q Query) (Found, error) {
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
			gaveUp, err := f.Siblings.GaveUp(ctx, q.Of, q.At, id, c.Owner)
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
			if err := f.owned(ctx, q, id, c.Owner, &out); err != nil {
				return out, err
			}
		}
	}
	earlier, err := f.Siblings.Earlier(ctx, q.Of, q.At, unheld)
	out.Shared = append(out.Shared, earlier...)
	return out, err
}

// owned adds an object to out if the Kustomization that its labels name holds it.
func (f Finder) owned(ctx context.Context, q Query, id inventory.ID, owner client.ObjectKey, out *Found) error {
	holds, err := f.Siblings.WantedBy(ctx, q.Of, q.At, id, owner)
	if err != nil {
		return err
	}
	if !holds {
		source, err := f.stranger(ctx, q, id, owner)
		if err != nil || source == (client.ObjectKey{}) {
			return err
		}
		if !slices.Contains(out.Sources, source) {
			out.Sources = append(out.Sources, source)
		}
	}
	out.Shared = append(out.Shared, siblings.Shared{ID: id, With: owner})
	return nil
}

// stranger returns the source of a Kustomization that is no sibling, and that holds an object which its labels name it for;
// empty for one that does not hold it.
//
// What it holds is what it has applied: its inventory, which the loop writes once the server would take the object from its
// account, and the object's labels say so. A tenant without the right to write the object brings about neither. One that is
// suspended, is being deleted, or cannot be applied does not overwrite anything, and so holds nothing. Nor does a tenant hold
// an object against a Kustomization that acts as the control plane: it could keep that from its own namespace.
func (f Finder) stranger(ctx context.Context, q Query, id inventory.ID, owner client.ObjectKey) (client.ObjectKey, error) {
	ks := &kustomizev1.Kustomization{}
	switch err := f.Hub.Get(ctx, owner, ks); {
	case apierrors.IsNotFound(err):
		return client.ObjectKey{}, nil
	case err != nil:
		return client.ObjectKey{}, fmt.Errorf("read the Kustomization %s: %w", owner, err)
	}
	unsupported, _ := kustomizations.Unsupported(ks.Spec)
	switch {
	case ks.Spec.Suspend, ks.DeletionTimestamp != nil, unsupported != "":
		return client.ObjectKey{}, nil
	case f.Siblings.Is(ks, q.Of.Namespace, q.At): // it has been asked
		return client.ObjectKey{}, nil
	case f.Privileged(q.Of) && !f.Privileged(ks):
		return client.ObjectKey{}, nil
	}
	owned, err := inventory.Read(ks.Status.Inventory)
	if err != nil || !slices.ContainsFunc(owned, func(e inventory.Entry) bool { return e.ID == id }) {
		return client.ObjectKey{}, nil // its own run reports an inventory that cannot be read
	}
	return inventory.SourceOf(ks), nil
}
