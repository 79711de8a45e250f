package switchover

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

const (
	// longest is for how long others are waited for.
	longest = 30 * time.Second
	// poll is when it is looked again. The loop also hears of them.
	poll = 5 * time.Second
)

// Wait asks whether a switch still waits for others.
type Wait struct {
	// Of is the Kustomization that has written all of the artifact At.
	Of *kustomizev1.Kustomization
	At siblings.Artifact
	// With are those that it exchanges objects with, and Leaving says which of them take something.
	With    []client.ObjectKey
	Leaving siblings.Handover
	// Within is the only namespace whose Kustomizations may be named; empty for all.
	Within string

	// arriving are the Kustomizations that the artifact is about to bring. Await sets it.
	arriving func() (arrivals, error)
}

// Await returns those that have written the artifact, too, and those that are gone, of which others have taken all, once no
// other is waited for. The error is of class loop.ClassWaiting
// while one is: one that can write the artifact, and does not itself wait for this one, for half a minute at most.
func (x *Groups) Await(ctx context.Context, w Wait) (written []client.ObjectKey, err error) {
	var missing []client.ObjectKey
	all, err := x.all(ctx)
	if err != nil {
		return nil, err
	}
	w.arriving = sync.OnceValues(func() (arrivals, error) { return x.forecast.arriving(ctx, all, w.Of, w.At, nil) })
	for _, key := range w.With {
		progress, err := x.progressOf(ctx, w, key)
		if err != nil {
			return nil, err
		}
		switch progress {
		case hasWritten, isGone:
			written = append(written, key)
		case willWrite:
			missing = append(missing, key)
		}
	}
	own := client.ObjectKeyFromObject(w.Of)
	if len(missing) == 0 {
		x.Forget(own)
		return written, nil
	}
	left := longest - x.waited(own)
	if left <= 0 {
		return written, nil
	}
	does := "has written it, too"
	if ks, err := x.order.read(ctx, missing[0]); err == nil && ks.DeletionTimestamp != nil {
		does = "is gone, which is being deleted"
	}
	return nil, loop.Waiting(meta.ProgressingReason, min(left, poll), fmt.Errorf("all of revision %s is written; it counts once Kustomization %s %s: their objects belong together",
		w.At.Revision, siblings.Name(missing[0], w.Within), does))
}

// waited is for how long a Kustomization has waited for others, at revisions of which none has counted yet: were the time to begin
// anew with each commit, nothing would ever count where these come often. It does begin anew if nobody was waited for as long as that
// meanwhile, as while a revision is refused.
func (x *Groups) waited(own client.ObjectKey) time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.clock.Now()
	since, known := x.since[own]
	if !known || now.Sub(since.asked) > longest {
		since.first = now
	}
	since.asked = now
	x.since[own] = since
	return now.Sub(since.first)
}

// progress is how far a Kustomization is with an artifact. The zero value is one that does not get there.
type progress int

const (
	willWrite progress = iota + 1
	hasWritten
	isGone
)

func (x *Groups) progressOf(ctx context.Context, w Wait, key client.ObjectKey) (progress, error) {
	ks, err := x.order.read(ctx, key)
	switch {
	case apierrors.IsNotFound(err) && takes(w.Leaving, key):
		return willWrite, nil // somebody is about to make it
	case apierrors.IsNotFound(err):
		return w.unlessArriving(key, isGone)
	case err != nil:
		return 0, err
	}
	if p := decide(ks, w.At); p != willWrite {
		if may, err := x.forecast.mayChange(ctx, ks, w.At); err != nil || !may {
			return p, err
		}
		if drops, err := x.forecast.yetToDrop(ctx, ks, w.Of, w.At); err != nil || drops {
			return willWrite, err
		}
		return w.unlessArriving(key, p)
	}
	waits, err := x.order.waitsFor(ctx, ks, client.ObjectKeyFromObject(w.Of))
	if err != nil || waits {
		return 0, err
	}
	if stays, err := x.forecast.stays(ctx, ks); err != nil || stays {
		return 0, err
	}
	if stuck, err := x.order.stuck(ctx, ks, w.At); err != nil || !stuck {
		return willWrite, err
	}
	all, err := w.arriving() // what it waits for may be among them
	if err != nil {
		return 0, err
	}
	if stuck, err := x.order.with(all).stuck(ctx, ks, w.At); err != nil || stuck {
		return 0, err
	}
	return willWrite, nil
}

// unlessArriving returns p for a Kustomization, and willWrite for one that the artifact is about to bring, or to give another spec.
func (w Wait) unlessArriving(key client.ObjectKey, p progress) (progress, error) {
	all, err := w.arriving()
	if _, arrives := all[key]; err == nil && arrives {
		return willWrite, nil
	}
	return p, err
}

// decide says how far a Kustomization is with an artifact by what its status says. One that is being deleted
// is waited for until it is gone: others have taken by then what it hands over.
func decide(ks *kustomizev1.Kustomization, at siblings.Artifact) progress {
	isSwitched := apimeta.FindStatusCondition(ks.Status.Conditions, revisiongate.Condition)
	ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
	switch {
	case inventory.SourceOf(ks) != at.Source, ks.Spec.Suspend, ks.DeletionTimestamp != nil && !inventory.Deletes(ks):
		return 0
	case ks.DeletionTimestamp != nil && apimeta.IsStatusConditionTrue(ks.Status.Conditions, meta.StalledCondition):
		return 0
	case ks.DeletionTimestamp != nil, ready == nil, ready.ObservedGeneration != ks.Generation:
		return willWrite
	case (lastgood.In(ks.Status).Artifact == at.Digest || checksHealth(ks, at)) && (isSwitched == nil || isSwitched.Reason == revisiongate.ReasonWritten):
		return hasWritten
	case refuses(ks, at):
		return 0
	default:
		return willWrite
	}
}

// checksHealth reports whether a Kustomization waits for the health of an artifact, all of which it has written by then: of the first
// one that it applies nothing else is recorded until it is healthy.
func checksHealth(ks *kustomizev1.Kustomization, at siblings.Artifact) bool {
	healthy := apimeta.FindStatusCondition(ks.Status.Conditions, meta.HealthyCondition)
	return ks.Status.LastAttemptedRevision == at.Revision && healthy != nil && healthy.Status == metav1.ConditionUnknown
}

// Text says of a revision that is switched what is waited for; within is the only namespace whose Kustomizations may be
// named, empty for all.
func Text(revision, digest string, with []client.ObjectKey, within string) string {
	var names []string
	for _, key := range with {
		names = append(names, siblings.Name(key, within))
	}
	return revisiongate.Announcement(revision, digest, names)
}

// Announce returns the reason and the message of the condition Switching of a Kustomization that is about to make
// changes, by how much of it is switched: if it has written all of the revision before, and writes nothing now, that it has.
func Announce(ks *kustomizev1.Kustomization, changes []applier.Change, of revisiongate.Extent, text string) (reason, message string) {
	if of == revisiongate.Definitions {
		return revisiongate.ReasonDefining, text
	}
	had := apimeta.FindStatusCondition(ks.Status.Conditions, revisiongate.Condition)
	if had != nil && had.Reason == revisiongate.ReasonWritten && had.Message == text && !slices.ContainsFunc(changes, applier.Change.Writes) {
		return revisiongate.ReasonWritten, text
	}
	return meta.ProgressingReason, text
}
