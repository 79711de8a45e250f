package transientrefusals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/approvals"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

const (
	// longest is for how long a refusal may be reported as progressing.
	longest = time.Minute
	// poll is the pause before the next try. A change of a Kustomization of the source starts one, too.
	poll = 2 * time.Second
)

// Refusal is the outcome of a run for a revision.
type Refusal struct {
	Of       *kustomizev1.Kustomization
	Revision string
	// Allowed is what people have allowed to be deleted at the revision.
	Allowed inventory.Allowance
	// Err is why the revision is refused; nil for a run without an error.
	Err error
	Now time.Time
}

// Refusals remembers since when revisions are refused. Use New.
type Refusals struct {
	hub   client.Reader
	mu    sync.Mutex
	since map[client.ObjectKey]first
}

// first is the first refusal of a revision.
type first struct {
	revision string
	at       time.Time
}

// New returns Refusals of which none is known yet; hub reads from a cache.
func New(hub client.Reader) *Refusals {
	return &Refusals{hub: hub, since: map[client.ObjectKey]first{}}
}

// Forget drops what is known of a Kustomization that is gone.
func (r *Refusals) Forget(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.since, key)
}

// Judge returns what to report of an outcome. If it is a refusal that may pass, that is an error of class
// loop.ClassWaiting with the reason Progressing, and mayPass is true.
func (r *Refusals) Judge(ctx context.Context, of Refusal) (judged error, mayPass bool) {
	outcome := loop.As(of.Err, "")
	if outcome == nil || !isRefusal(outcome) {
		return of.Err, false
	}
	why, err := r.awaits(ctx, of)
	if err != nil {
		return errors.Join(of.Err, err), false
	}
	if why == "" || of.Now.Sub(r.firstOf(of)) >= longest {
		return of.Err, false
	}
	return loop.Waiting(meta.ProgressingReason, poll, fmt.Errorf("%s; until then: %w", why, outcome.Err)), true
}

// isRefusal reports whether an outcome means that the revision itself cannot be applied.
func isRefusal(outcome *loop.Error) bool {
	switch outcome.Reason {
	case approvals.ReasonMissing, meta.ProgressingReason, meta.DependencyNotReadyReason, meta.ArtifactFailedReason, meta.HealthCheckFailedReason, meta.PruneFailedReason, siblings.ReasonHandingOver, inventory.ReasonDeletedAgain:
		return false
	default:
		return outcome.Class != loop.ClassRetry
	}
}

func (r *Refusals) firstOf(of Refusal) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := client.ObjectKeyFromObject(of.Of)
	if had, ok := r.since[key]; !ok || had.revision != of.Revision {
		r.since[key] = first{revision: of.Revision, at: of.Now}
	}
	return r.since[key].at
}

// awaits returns a text about who may yet remove the reason of a refusal; empty for nobody.
func (r *Refusals) awaits(ctx context.Context, of Refusal) (string, error) {
	if why := leavesWith(of); why != "" {
		return why, nil
	}
	own := client.ObjectKeyFromObject(of.Of)
	key, owned := inventory.OwnerOf(of.Of)
	if !owned || key == own {
		return "", nil
	}
	parent := &kustomizev1.Kustomization{}
	if err := r.hub.Get(ctx, key, parent); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("read the Kustomization %s: %w", key, err)
		}
		return "", nil
	}
	if inventory.SourceOf(parent) != inventory.SourceOf(of.Of) || !holds(parent, own) || !mayChange(parent, own, of.Revision) {
		return "", nil
	}
	return fmt.Sprintf("waiting for Kustomization %s, which has yet to apply revision %s", key, of.Revision), nil
}

// leavesWith returns a text about a namespace whose deletion people have allowed, if the brake refuses nothing but
// objects in it: once the namespace is gone, they are gone, too.
func leavesWith(of Refusal) string {
	var brake *inventory.Refusal
	if !errors.As(of.Err, &brake) || len(brake.Losses) == 0 {
		return ""
	}
	space := inventory.ID{GroupKind: schema.GroupKind{Kind: "Namespace"}}
	for _, l := range brake.Losses {
		space.Name = l.ID.Namespace
		if l.Precious || space.Name == "" || !of.Allowed.Names(space) {
			return ""
		}
	}
	return "waiting for " + inventory.Describe(space) + " to go, which this revision allows"
}

// holds reports whether the inventory of a Kustomization has another one. The child's labels alone are no evidence that
// the parent applied it.
func holds(parent *kustomizev1.Kustomization, child client.ObjectKey) bool {
	owned, err := inventory.Here(parent)
	return err == nil && slices.Contains(siblings.KeysIn(owned), child)
}

// mayChange reports whether a Kustomization has yet to apply the revision, by which it may change or delete its child.
func mayChange(parent *kustomizev1.Kustomization, child client.ObjectKey, revision string) bool {
	if parent.Spec.Suspend || parent.DeletionTimestamp != nil {
		return false
	}
	status := &parent.Status
	if slices.ContainsFunc(inventory.Leaving(*status), func(id inventory.ID) bool {
		return id.GroupKind.Kind == kustomizev1.KustomizationKind && id.Namespace == child.Namespace && id.Name == child.Name
	}) {
		return true // it is about to be deleted
	}
	ready := apimeta.FindStatusCondition(status.Conditions, meta.ReadyCondition)
	healthy := apimeta.FindStatusCondition(status.Conditions, meta.HealthyCondition)
	switch {
	case status.LastAppliedRevision == revision:
		return false
	case status.LastAttemptedRevision != revision, ready == nil:
		return true
	case ready.Reason == siblings.ReasonHandingOver, healthy != nil && healthy.Reason == ready.Reason && healthy.Message == ready.Message:
		return false // the revision is applied, and the run waits for something else
	case ready.Status == metav1.ConditionUnknown:
		return true
	default: // the parent's revision is refused; only these two reasons pass by themselves
		return ready.Reason == meta.DependencyNotReadyReason || ready.Reason == meta.ReconciliationFailedReason
	}
}
