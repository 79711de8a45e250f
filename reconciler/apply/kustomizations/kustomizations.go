// Package kustomizations reads and writes Kustomizations for the loop that applies them.
//
// In go names and statuses; out come Kustomizations as a cache has them, own writes included. It writes
// the finalizer and the status, and only where they differ.
package kustomizations

import (
	"context"
	"errors"
	"fmt"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Store reads and writes Kustomizations. Use New.
type Store struct {
	hub     client.Client
	live    client.Reader
	written *writecache.Cache[*kustomizev1.Kustomization]
}

// New returns a Store; hub reads from a cache, and live without one.
func New(hub client.Client, live client.Reader, clk clock.PassiveClock) Store {
	return Store{hub: hub, live: live, written: writecache.New[*kustomizev1.Kustomization](clk)}
}

// Forget drops what is remembered of a Kustomization that is gone.
func (k Store) Forget(key client.ObjectKey) { k.written.Forget(key) }

// Read returns a copy of the Kustomization as it was last seen in the cache or written here, whichever is newer.
func (k Store) Read(ctx context.Context, key client.ObjectKey) (*kustomizev1.Kustomization, bool, error) {
	cached := &kustomizev1.Kustomization{}
	err := k.hub.Get(ctx, key, cached)
	if client.IgnoreNotFound(err) != nil {
		return nil, false, fmt.Errorf("read the Kustomization: %w", err)
	}
	latest, found := k.written.Latest(key, cached, err == nil)
	if !found {
		return nil, false, nil
	}
	return latest.DeepCopy(), true, nil
}

// AddFinalizer adds the finalizer, so that the loop can delete the objects before the Kustomization is gone.
func (k Store) AddFinalizer(ctx context.Context, ks *kustomizev1.Kustomization) (*kustomizev1.Kustomization, error) {
	before := ks.DeepCopy()
	if !controllerutil.AddFinalizer(ks, kustomizev1.KustomizationFinalizer) {
		return ks, nil
	}
	if err := k.hub.Patch(ctx, ks, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, fmt.Errorf("add the finalizer: %w", err)
	}
	k.written.Wrote(ks.DeepCopy())
	return ks, nil
}

// ErrChanged is returned for a status that was written by somebody else meanwhile.
var ErrChanged = errors.New("the status has changed")

// PatchStatus writes the status of after by a patch, if it differs from that of before. If somebody else has written the
// status since before, it writes nothing and returns ErrChanged: a Kustomization that hands objects over has two
// writers, itself and the one that deletes it, and a list in the status can only be replaced.
func (k Store) PatchStatus(ctx context.Context, before, after *kustomizev1.Kustomization) error {
	if data, err := client.MergeFrom(before).Data(after); err != nil || string(data) == "{}" {
		return err
	}
	// The run's own deadline must not keep its outcome from being written.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patchTimeout)
	defer cancel()
	err := k.patchStatus(ctx, before, after)
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status: %w", err))
	}
	k.written.Wrote(after.DeepCopy())
	return nil
}

// patchStatus writes the status of after to a Kustomization whose status is that of before. What else of it changes meanwhile,
// such as an annotation, does not matter.
func (k Store) patchStatus(ctx context.Context, before, after *kustomizev1.Kustomization) error {
	from, status := before, after.Status.DeepCopy()
	for {
		err := k.hub.Status().Patch(ctx, after, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) {
			return err
		}
		now := &kustomizev1.Kustomization{}
		if err := k.live.Get(ctx, client.ObjectKeyFromObject(before), now); err != nil {
			return err
		}
		if now.UID != before.UID || !apiequality.Semantic.DeepEqual(now.Status, before.Status) {
			return ErrChanged
		}
		from, *after = now, *now.DeepCopy()
		after.Status = *status.DeepCopy()
	}
}

// patchTimeout bounds one write of a status.
const patchTimeout = 10 * time.Second

// ForgetDeleted is a predicate that passes every event. On a deletion it drops the own writes that are
// kept of the object: else a Kustomization whose finalizer somebody removed would be read, and applied, again.
func (k Store) ForgetDeleted() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		k.written.Gone(e.Object)
		return true
	}}
}
