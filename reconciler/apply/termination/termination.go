// Package termination decides what is still being deleted of what left a Kustomization: what clusters still hold, and what the
// control plane cannot finish deleting because of finalizers. It also finds volume claims that clusters keep with their
// data.
//
// In go what a revision deleted, and what the status records of earlier ones; out comes what is left, in the form in
// which the status records it. That a status names an object is no evidence: the object counts only if its labels name
// the Kustomization, or one that left it. It reads Works from caches, and single objects live; it writes and deletes
// nothing.
package termination

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
	// deletingPoll is the pause before looking again at what the control plane is deleting, and at what the status does
	// not name, for which no watch starts a run.
	deletingPoll = 5 * time.Second
	// clustersPoll is the pause before looking again at what clusters hold. It can be long, as reports
	// of clusters compute this for themselves.
	clustersPoll = 30 * time.Second
	// mostNamed is how many objects a message names.
	mostNamed = 3
)

// Clusters returns what clusters hold of what left Kustomizations. health.Reader implements it.
type Clusters interface {
	// Remaining returns those of the removed objects that clusters still hold and that the owner, or a
	// Kustomization among them, applied.
	Remaining(ctx context.Context, owner client.ObjectKey, removed []inventory.ID) ([]inventory.ID, error)
	// Leaving returns all objects that clusters still hold and are to remove, of what the owner or a
	// Kustomization among removed applied, whether they are in removed or not.
	Leaving(ctx context.Context, owner client.ObjectKey, removed []inventory.ID) ([]inventory.ID, error)
	// Keeping returns a part for each volume claim that the owner applied and that stays in clusters although its
	// binding is not for them any more.
	Keeping(ctx context.Context, owner client.ObjectKey, owned []inventory.Entry) ([]rollup.Part, error)
	// Unheeded returns a part for each template of the owner that is not propagated as a policy asks.
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
	// Of is the Kustomization, whose status records what was left before.
	Of *kustomizev1.Kustomization
	// Owned is what it owns now: these objects do not count as left, even if the status lists them.
	Owned []inventory.Entry
	// Removed is what has been deleted, and Seen are these objects as they were before.
	Removed []inventory.Entry
	Seen    applier.Observed
	// Beneath is what was deleted along with the Kustomizations among them.
	Beneath map[inventory.ID][]inventory.ID
}

// Found is what is left. The zero value means that nobody has looked.
type Found struct {
	listed      bool
	inClusters  []inventory.ID
	terminating []inventory.Terminating
	keeping     string
	unheeded    string
}

// Some reports whether there may be anything to find: the status records that something is left, or is not as a policy
// asks, or the inventory has a volume claim, which clusters may keep.
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
	if inventory.RemovedBeyond(q.Of.Status) > 0 { // a status names only so many: Works and bindings know the others
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
	// Keep a Kustomization recorded as long as anything that it applied is left: it proves whose that is.
	for _, id := range by {
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

// After returns the pause before looking again; zero for never.
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

// Record writes what is left into a status. Where nobody has looked, the status keeps what it records.
func (f Found) Record(status *kustomizev1.KustomizationStatus) {
	inventory.RecordRemoved(status, f.inClusters, f.listed)
	inventory.RecordTerminating(status, f.terminating, f.listed)
}

const (
	// stillDeleted, stays and notTakenUp begin the parts that Describe adds to a message, in this order: about what is
	// being deleted, claims that stay, and policies that are not heeded. By them it finds the parts that it replaces.
	stillDeleted = "; still being deleted: "
	stays        = "; claim "
	notTakenUp   = "; " + rollup.NotTakenUp
)

// Describe returns a message with parts about what the control plane is still deleting, claims that clusters keep with
// their data, and policies that are not heeded. They replace such parts that the message has already.
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

// deletedStill names what the control plane is still deleting; empty for nothing.
func (f Found) deletedStill() string {
	deleted := slices.DeleteFunc(slices.Clone(f.terminating), func(t inventory.Terminating) bool { return t.Ahead })
	if len(deleted) == 0 {
		return ""
	}
	var texts []string
	for _, t := range deleted[:min(len(deleted), mostNamed)] {
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
	if more := len(deleted) - mostNamed; more > 0 {
		message += fmt.Sprintf(" and %d more", more)
	}
	return message
}
