// Package kustomizations reads and writes Kustomizations for the loop that applies them.
//
// In go names and statuses; out come Kustomizations as a cache has them, own writes included. It writes
// the finalizer and the status, and only where they differ.
package kustomizations

import (
	"context"
	"fmt"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
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
	written *writecache.Cache[*kustomizev1.Kustomization]
}

// New returns a Store; hub reads from a cache.
func New(hub client.Client, clk clock.PassiveClock) Store {
	return Store{hub: hub, written: writecache.New[*kustomizev1.Kustomization](clk)}
}

// Forget drops what is remembered of a Kustomization that is gone.
func (k Store) Forget(key client.ObjectKey) { k.written.Gone(key) }

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

// Protect adds the finalizer, so that the loop can delete the objects before the Kustomization is gone.
func (k Store) Protect(ctx context.Context, ks *kustomizev1.Kustomization) (*kustomizev1.Kustomization, error) {
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

// Publish writes the status of after by a patch, if it differs from that of before.
func (k Store) Publish(ctx context.Context, before, after *kustomizev1.Kustomization) error {
	patch := client.MergeFrom(before)
	if data, err := patch.Data(after); err != nil || string(data) == "{}" {
		return err
	}
	// The run's own deadline must not keep its outcome from being written.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
	defer cancel()
	if err := k.hub.Status().Patch(ctx, after, patch); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status: %w", err))
	}
	k.written.Wrote(after.DeepCopy())
	return nil
}

// publishTimeout bounds one write of a status.
const publishTimeout = 10 * time.Second

// Endings is a predicate that passes every event. On a deletion it drops the own writes that are
// kept of the object: else a Kustomization whose finalizer somebody removed would be read, and applied, again.
func (k Store) Endings() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		k.written.Gone(client.ObjectKeyFromObject(e.Object))
		return true
	}}
}
