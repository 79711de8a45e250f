// Package switchover says how one revision follows another as a whole.
//
// In go what an apply changes and deletes; out come whether its parts depend on each other, what goes
// with them, and whether those who carry objects to clusters have seen all of it. It writes nothing.
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
	"github.com/flotilla-io/flotilla/reconciler/switching"
)

// Switches keep what is half written from those who carry it.
type Switches interface {
	// Begin says that a Kustomization is going to be switched to another revision.
	Begin(owner client.ObjectKey)
	// End says that it is switched, or is not going to be, and what left it and is not gone yet.
	End(ctx context.Context, owner client.ObjectKey, leaving []inventory.Entry)
	// Unseen returns those of the versions that whoever carries objects has not seen yet.
	Unseen(ctx context.Context, versions []switching.Version) ([]switching.Version, error)
}

// Needed reports whether changes and deletions, one by one, would come to more than the revision before
// and the one after: policies or overrides change or go, and something else changes or goes.
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

// Rules divides entries into policies and overrides, and the rest.
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

// isRule reports whether objects of a kind say where others run, or what differs there.
func isRule(kind schema.GroupKind) bool {
	stage := inventory.StageOf(kind)
	return stage == inventory.Overrides || stage == inventory.Policies
}

// Written returns what is to be seen of an apply: what it wrote and deleted, and, where an earlier run
// began, all that stands.
func Written(changes []applier.Change, deleted []inventory.Entry, seen applier.Observed, resumed bool) []switching.Version {
	var out []switching.Version
	for _, c := range changes {
		version := c.Version
		if stands := seen[inventory.IDOf(c.Desired)]; version == "" && resumed && stands != nil {
			version = stands.GetResourceVersion()
		}
		if version != "" {
			out = append(out, switching.Version{GroupVersionKind: c.Desired.GroupVersionKind(), ObjectKey: client.ObjectKeyFromObject(c.Desired), ResourceVersion: version})
		}
	}
	for _, e := range deleted {
		if was := seen[e.ID]; was != nil {
			out = append(out, switching.Version{GroupVersionKind: was.GroupVersionKind(), ObjectKey: client.ObjectKeyFromObject(was), UID: was.GetUID(), Gone: true})
		}
	}
	return out
}

const (
	// seenPoll is how often it is looked whether what was written is seen, and seenTimeout after how
	// long somebody else gets a turn.
	seenPoll    = 2 * time.Millisecond
	seenTimeout = 5 * time.Second
)

// Await waits until those who carry objects have seen what was written. The error says what they have
// not, and is of class loop.ClassWaiting.
func Await(ctx context.Context, of Switches, written []switching.Version) error {
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
