// Package switchover decides which revisions clusters must see as a whole, and of which Kustomizations together: a commit may
// move objects between two of them, or change a template in the one and a policy or an override for it in the other.
//
// In go what an apply writes, deletes and takes from others of its source, and Kustomizations as the control plane has them; out come
// whether the changes depend on each other, the group that is switched with this Kustomization, and whether the loops that carry objects to
// clusters have seen all of it. It writes nothing. That others of the group are waited for stands in the condition
// Switching, for whoever leads next; since when is kept in memory, and begins anew after a restart.
package switchover

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// Switches keep loops that propagate objects from acting on a revision that is half written.
type Switches interface {
	// Begin announces that a Kustomization is about to be switched to another revision.
	Begin(owner client.ObjectKey, of revisiongate.Extent)
	// End announces that the switch is done, or will not happen. leaving is what left the Kustomization and is
	// not deleted yet.
	End(ctx context.Context, owner client.ObjectKey, leaving []inventory.Entry)
	// Join has what a Kustomization wrote count no sooner than what those of the others wrote that are being switched.
	Join(owner client.ObjectKey, others []client.ObjectKey)
	// Unseen returns those of the versions that whoever carries objects has not seen yet.
	Unseen(ctx context.Context, versions []revisiongate.Version) ([]revisiongate.Version, error)
}

// Needed reports whether a switch is needed: whether other loops, which see changes one by one, could act on a state
// that is neither the revision before nor the one after. That is so if a policy or override is written or deleted,
// and anything else is as well.
func Needed(changes []applier.Change, deleted []inventory.Entry) bool {
	all, rules := 0, 0
	for _, c := range changes {
		if !c.Writes() {
			continue
		}
		if all++; isRule(c.Desired.GroupVersionKind().GroupKind()) {
			rules++
		}
	}
	gone, _ := Rules(deleted)
	return rules+len(gone) > 0 && all+len(deleted) > 1
}

// Rule reports whether a policy or an override was written or deleted.
func Rule(changes []applier.Change, deleted []inventory.Entry) bool {
	gone, _ := Rules(deleted)
	return len(gone) > 0 || slices.ContainsFunc(changes, func(c applier.Change) bool {
		return c.Version != "" && isRule(c.Desired.GroupVersionKind().GroupKind())
	})
}

// Rules splits entries into policies and overrides, and the rest.
func Rules(entries []inventory.Entry) (rules, rest []inventory.Entry) {
	for _, e := range entries {
		if isRule(e.ID.GroupKind) {
			rules = append(rules, e)
		} else {
			rest = append(rest, e)
		}
	}
	return rules, rest
}

// First divides what is to be deleted into what goes before health is looked at, and the rest: rules go first, and what hands objects
// over to others.
func First(deleted []inventory.Entry, handsOver func(inventory.Entry) (bool, error)) (first, rest []inventory.Entry, err error) {
	first, others := Rules(deleted)
	for _, e := range others {
		hands, err := handsOver(e)
		if err != nil {
			return nil, nil, err
		}
		if hands {
			first = append(first, e)
		} else {
			rest = append(rest, e)
		}
	}
	return first, rest, nil
}

// Apart divides what goes first into what goes now and, if others are switched with this one, the rules, which go last: who leads next, if
// this one dies before the others have written, could not read from what is gone for whom it counted.
func Apart(first []inventory.Entry, others bool) (now, last []inventory.Entry) {
	if !others {
		return first, nil
	}
	last, now = Rules(first)
	return now, last
}

// isRule reports whether a kind is a propagation or override policy.
func isRule(kind schema.GroupKind) bool {
	stage := inventory.StageOf(kind)
	return stage == inventory.Overrides || stage == inventory.Policies
}

// Written returns the versions that other loops have to see of an apply: of what it wrote and deleted, and,
// if an earlier run began the switch, of all objects, as that run may have written them.
func Written(changes []applier.Change, deleted []inventory.Entry, seen applier.Observed, resumed bool) []revisiongate.Version {
	var out []revisiongate.Version
	for _, c := range changes {
		version := c.Version
		if stands := seen[inventory.IDOf(c.Desired)]; version == "" && resumed && stands != nil {
			version = stands.GetResourceVersion()
		}
		if version != "" {
			out = append(out, revisiongate.Version{GroupVersionKind: c.Desired.GroupVersionKind(), ObjectKey: client.ObjectKeyFromObject(c.Desired), ResourceVersion: version})
		}
	}
	for _, e := range deleted {
		if was := seen[e.ID]; was != nil {
			out = append(out, revisiongate.Version{GroupVersionKind: was.GroupVersionKind(), ObjectKey: client.ObjectKeyFromObject(was), UID: was.GetUID(), Gone: true})
		}
	}
	return out
}

const (
	// seenPoll is the pause between looks at whether everything is seen. After seenTimeout the run ends, so
	// that it does not hold its worker, and is repeated.
	seenPoll    = 2 * time.Millisecond
	seenTimeout = 5 * time.Second
)

// Await waits until the loops that propagate objects have seen what was written. If that takes too long, the
// error is of class loop.ClassWaiting and names an object that they have not seen.
func Await(ctx context.Context, of Switches, written []revisiongate.Version) error {
	unseen := written
	err := wait.PollUntilContextTimeout(ctx, seenPoll, seenTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		unseen, err = of.Unseen(ctx, unseen)
		return len(unseen) == 0, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return loop.Waiting(meta.ProgressingReason, time.Second, fmt.Errorf(
			"all is written; %d objects are not seen by the watches of the control plane yet, such as %s %s", len(unseen), unseen[0].Kind, unseen[0].ObjectKey))
	}
	return err
}
