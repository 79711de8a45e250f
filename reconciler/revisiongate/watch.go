package revisiongate

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// Register makes the tracker follow overrides, and Kustomizations where a loop applies them, by the
// cache that loops read from. Listeners must be added before.
func (t *Tracker) Register(ctx context.Context, hub cache.Cache, kustomizations bool) error {
	handlers := map[client.Object]toolscache.ResourceEventHandler{
		&policyv1alpha1.OverridePolicy{}:        ofOverrides(t),
		&policyv1alpha1.ClusterOverridePolicy{}: ofOverrides(t),
	}
	if kustomizations {
		handlers[&kustomizev1.Kustomization{}] = ofKustomizations(ctx, t)
	}
	for kind, handler := range handlers {
		informer, err := hub.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch what is being switched: %w", err)
		}
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return fmt.Errorf("watch what is being switched: %w", err)
		}
		t.synced = append(t.synced, registration.HasSynced)
	}
	return nil
}

func ofKustomizations(ctx context.Context, t *Tracker) toolscache.ResourceEventHandler {
	observe := func(obj any, first bool) {
		if ks, ok := obj.(*kustomizev1.Kustomization); ok {
			t.observe(ctx, client.ObjectKeyFromObject(ks), ks, first)
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    observe,
		UpdateFunc: func(_, obj any) { observe(obj, false) },
		DeleteFunc: func(obj any) {
			if ks, ok := last(obj).(*kustomizev1.Kustomization); ok {
				t.observe(ctx, client.ObjectKeyFromObject(ks), nil, false)
			}
		},
	}
}

func ofOverrides(t *Tracker) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, first bool) {
			if o, ok := obj.(policyv1alpha1.Override); ok {
				t.hear(nil, o, first)
			}
		},
		UpdateFunc: func(before, after any) {
			was, ok := before.(policyv1alpha1.Override)
			is, both := after.(policyv1alpha1.Override)
			if ok && both {
				t.hear(was, is, false)
			}
		},
		DeleteFunc: func(obj any) {
			if o, ok := last(obj).(policyv1alpha1.Override); ok {
				t.hear(o, nil, false)
			}
		},
	}
}

// last returns the last known state of a deleted object.
func last(obj any) any {
	if missed, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		return missed.Obj
	}
	return obj
}

// Synced is a controller's source without events: with it the controller begins once the
// tracker is synced.
type Synced[T comparable] struct{ Of *Tracker }

// Start does nothing.
func (Synced[T]) Start(context.Context, workqueue.TypedRateLimitingInterface[T]) error { return nil }

// WaitForSync waits until the tracker has received all objects that existed.
func (s Synced[T]) WaitForSync(ctx context.Context) error {
	if !toolscache.WaitForCacheSync(ctx.Done(), s.Of.synced...) {
		return fmt.Errorf("what is being switched is not known: %w", context.Cause(ctx))
	}
	return nil
}

var _ source.TypedSyncingSource[string] = Synced[string]{}
