// Package observation reads the objects that a revision holds, to judge their health.
//
// In go the entries whose health is asked for, and those of the revision; out come the objects as they are on the hub.
// The loop's own rights are used: the account may apply these objects, and so may know them. Labels alone are no reason
// to read an object, as anyone who writes an object chooses them.
package observation

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/watches"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// Read returns those of the entries that the revision holds: nil for one that does not exist, or that does not carry
// the owner's labels. Templates, if not nil, are what watches have of objects: those are taken as they are there, and
// only the others are asked for.
func Read(ctx context.Context, by *applier.Applier, owner client.ObjectKey, entries, revision []inventory.Entry, templates watches.Templates) (applier.Observed, error) {
	holds := make(map[inventory.ID]bool, len(revision))
	for _, e := range revision {
		holds[e.ID] = true
	}
	observed, rest := make(applier.Observed, len(entries)), []inventory.Entry{}
	for _, e := range entries {
		if !holds[e.ID] {
			continue
		}
		if templates != nil {
			key := templatestore.Key{GroupVersionKind: e.GroupVersionKind(), Namespace: e.ID.Namespace, Name: e.ID.Name}
			obj, presence, err := templates.Get(ctx, key)
			if err != nil {
				return nil, err
			}
			if presence == templatestore.Present {
				if of, known := inventory.OwnerOf(obj); known && of == owner {
					observed[e.ID] = obj
					continue
				}
			}
		}
		rest = append(rest, e)
	}
	labelled, err := by.Observe(ctx, owner, rest)
	if err != nil {
		return nil, err
	}
	for _, e := range rest {
		observed[e.ID] = labelled[e.ID]
	}
	return observed, nil
}
