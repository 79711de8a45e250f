// Package remains finds out what is still there of that which left a Kustomization: what clusters hold, and what the
// control plane is deleting and cannot be done with, as finalizers keep it; and which claims stay in clusters with their data.
//
// In go what a revision deleted, and what the status says of those before; out comes what is left, in the form in which
// the status keeps it. That a status names an object is no evidence: it counts where its labels name the Kustomization,
// or one that left it. It reads Works from caches, and single objects live; it writes and deletes nothing.
package remains

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/object"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

const (
	// deletingPoll is when to look again at what the control plane is deleting, and at what is not named.
	deletingPoll = 5 * time.Second
	// clustersPoll is when to look again at what clusters hold: whoever reports it looks for himself.
	clustersPoll = 30 * time.Second
	// mostNamed is how many objects a message names.
	mostNamed = 3
)

// Clusters know what clusters hold of what left Kustomizations.
type Clusters interface {
	// Remaining returns those of the objects that clusters hold, of what the named Kustomization, or one among
	// them, applied.
	Remaining(ctx context.Context, owner client.ObjectKey, removed []inventory.ID) ([]inventory.ID, error)
	// Leaving returns all of these that clusters are to hold no more, whether they are given or not.
	Leaving(ctx context.Context, owner client.ObjectKey, removed []inventory.ID) ([]inventory.ID, error)
	// Keeping returns a part per claim that the named Kustomization owns and that stays in clusters although nobody asks
	// for it there.
	Keeping(ctx context.Context, owner client.ObjectKey, owned []inventory.Entry) ([]rollup.Part, error)
	// Unheeded returns a part per template that the named Kustomization owns and that is not as a policy asks for.
	Unheeded(ctx context.Context, owner client.ObjectKey, owned []inventory.Entry) ([]rollup.Part, error)
}

// Finder finds what is left. Use New.
type Finder struct {
	clusters Clusters
	deleting deleting
}

// New returns a Finder. live reads without a cache.
func New(clusters Clusters, live client.Reader, mapper apimeta.RESTMapper) Finder {
	return Finder{clusters: clusters, deleting: deleting{live: live, mapper: mapper}}
}

// Query asks what is left.
type Query struct {
	// Of is the Kustomization, whose status says what was left before.
	Of *kustomizev1.Kustomization
	// Owned is what it has, or has again: that is not gone.
	Owned []inventory.Entry
	// Removed has been deleted, and Seen is how it was before.
	Removed []inventory.Entry
	Seen    applier.Observed
	// Beneath is what went with Kustomizations among these.
	Beneath map[inventory.ID][]inventory.ID
}

// Found is what is left. The zero value is that nobody has looked.
type Found struct {
	listed      bool
	inClusters  []inventory.ID
	terminating []inventory.Terminating
	keeping     string
	unheeded    string
}

// Some reports whether a status says that anything is left, or is not as a policy asks for, or that something is owned that may
// stay somewhere: a claim.
func Some(status kustomizev1.KustomizationStatus) bool {
	if status.Inventory != nil && slices.ContainsFunc(status.Inventory.Entries, isClaim) {
		return true
	}
	if ready := apimeta.FindStatusCondition(status.Conditions, meta.ReadyCondition); ready != nil && strings.Contains(ready.Message, notTakenUp) {
		return true
	}
	found, beyond := inventory.TerminatingIn(status)
	return len(found)+beyond+len(inventory.Removed(status))+inventory.RemovedBeyond(status) > 0
}

func isClaim(e kustomizev1.ResourceRef) bool {
	id, err := object.ParseObjMetadata(e.ID)
	return err == nil && volumes.IsVolumeClaim(id.GroupKind)
}

// Find finds out what is left of what left a Kustomization.
func (f Finder) Find(ctx context.Context, q Query) (Found, error) {
	owner := client.ObjectKeyFromObject(q.Of)
	owned := map[inventory.ID]bool{}
	for _, e := range q.Owned {
		owned[e.ID] = true
	}
	before := inventory.Removed(q.Of.Status)
	ids := slices.Clone(before)
	for _, e := range q.Removed {
		ids = append(append(ids, e.ID), q.Beneath[e.ID]...)
	}
	if inventory.RemovedBeyond(q.Of.Status) > 0 {
		more, err := f.clusters.Leaving(ctx, owner, ids)
		if err != nil {
			return Found{}, err
		}
		ids = append(ids, more...)
	}
	seen := map[inventory.ID]bool{}
	ids = slices.DeleteFunc(ids, func(id inventory.ID) bool {
		was := owned[id] || seen[id]
		seen[id] = true // each once
		return was
	})
	out := Found{listed: true}
	var err error
	if out.inClusters, err = f.clusters.Remaining(ctx, owner, ids); err != nil {
		return Found{}, err
	}
	var by []inventory.ID
	out.terminating, by, err = f.deleting.find(ctx, suspects{owner: owner, owned: owned, ids: ids, candidates: candidates(q, before, out.inClusters)})
	if err != nil {
		return Found{}, err
	}
	for _, id := range by { // they are named as long as what they applied is
		if !slices.Contains(out.inClusters, id) {
			out.inClusters = append(out.inClusters, id)
		}
	}
	keeping, err := f.clusters.Keeping(ctx, owner, q.Owned)
	if err != nil {
		return Found{}, err
	}
	out.keeping = rollup.Kept(keeping)
	unheeded, err := f.clusters.Unheeded(ctx, owner, q.Owned)
	if err != nil {
		return Found{}, err
	}
	out.unheeded = rollup.Unheeded(unheeded)
	return out, nil
}

// After is when to look again; zero for never.
func (f Found) After() time.Duration {
	switch {
	case len(f.terminating) > 0 || inventory.Unnamed(f.inClusters) > 0 || f.unheeded != "":
		return deletingPoll
	case len(f.inClusters) > 0:
		return clustersPoll
	default:
		return 0
	}
}

// Record has a status say what is left, or, where nobody has looked, what it showed before.
func (f Found) Record(status *kustomizev1.KustomizationStatus) {
	inventory.RecordRemoved(status, f.inClusters, f.listed)
	inventory.RecordTerminating(status, f.terminating, f.listed)
}

const (
	// stillDeleted begins what a message says of what is left, stays what it says of claims, and notTakenUp what it says of
	// policies, which ends it.
	stillDeleted = "; still being deleted: "
	stays        = "; claim "
	notTakenUp   = "; " + rollup.NotTakenUp
)

// Describe returns a message with what the control plane is still deleting, what stays in clusters with its data, and what
// policies ask for and is not done, in place of what it showed of these before.
func (f Found) Describe(message string) string {
	if !f.listed {
		return message
	}
	message, _, _ = strings.Cut(message, notTakenUp)
	message, _, _ = strings.Cut(message, stays)
	message, _, _ = strings.Cut(message, stillDeleted)
	message += f.deletedStill()
	if f.keeping != "" {
		message += "; " + f.keeping
	}
	if f.unheeded != "" {
		message += "; " + f.unheeded
	}
	return message
}

// deletedStill names what the control plane is deleting still; empty for nothing.
func (f Found) deletedStill() string {
	if len(f.terminating) == 0 {
		return ""
	}
	var texts []string
	for _, t := range f.terminating[:min(len(f.terminating), mostNamed)] {
		text := inventory.Describe(t.ID)
		if t.Nameless {
			text = t.ID.GroupKind.Kind
		}
		if t.Keeps != "" {
			text += " (" + t.Keeps + ")"
		}
		texts = append(texts, text)
	}
	message := stillDeleted + strings.Join(texts, ", ")
	if more := len(f.terminating) - mostNamed; more > 0 {
		message += fmt.Sprintf(" and %d more", more)
	}
	return message
}
