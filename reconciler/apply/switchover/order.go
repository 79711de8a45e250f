package switchover

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/dependencies"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/refusals"
)

// refuses reports whether a Kustomization has said, of its spec as it is, that it does not apply an artifact: as that is refused, or as
// it applies none before somebody changes its spec, or gives it rights.
func refuses(ks *kustomizev1.Kustomization, at siblings.Artifact) bool {
	ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
	switch {
	case ready == nil || ready.Status != metav1.ConditionFalse || ready.ObservedGeneration != ks.Generation:
		return false
	case refusals.AtAnyRevision(ready.Reason), ready.Reason == meta.DependencyNotReadyReason && dependencies.Barred(ready.Message):
		return true
	default:
		return ks.Status.LastAttemptedRevision == at.Revision && !mayPass(ready.Reason)
	}
}

// mayPass reports whether something that keeps a revision from being applied is expected to pass by itself.
func mayPass(reason string) bool {
	return reason == meta.DependencyNotReadyReason || reason == meta.ReconciliationFailedReason
}

// order knows which Kustomizations spec.dependsOn puts before which, where those that arrive are as they will be.
type order struct {
	hub, live client.Reader
	arrivals  arrivals
}

// with returns the order where some arrive.
func (o order) with(some arrivals) order {
	o.arrivals = some
	return o
}

// between reports whether one of two depends on the other, directly or not.
func (o order) between(ctx context.Context, a, b *kustomizev1.Kustomization) (bool, error) {
	if waits, err := o.waitsFor(ctx, a, client.ObjectKeyFromObject(b)); err != nil || waits {
		return waits, err
	}
	return o.waitsFor(ctx, b, client.ObjectKeyFromObject(a))
}

// read reads a Kustomization; one that was just made may be missing in the cache.
func (o order) read(ctx context.Context, key client.ObjectKey) (*kustomizev1.Kustomization, error) {
	ks := &kustomizev1.Kustomization{}
	err := o.hub.Get(ctx, key, ks)
	if apierrors.IsNotFound(err) {
		err = o.live.Get(ctx, key, ks)
	}
	if err != nil {
		return nil, fmt.Errorf("read the Kustomization %s: %w", key, err)
	}
	return ks, nil
}

// waitsFor reports whether a Kustomization depends on another one, directly or not.
func (o order) waitsFor(ctx context.Context, ks *kustomizev1.Kustomization, other client.ObjectKey) (bool, error) {
	seen, all := map[client.ObjectKey]bool{}, []*kustomizev1.Kustomization{ks}
	for i := 0; i < len(all); i++ {
		for _, ref := range all[i].Spec.DependsOn {
			key := dependencies.Key(all[i], ref)
			if key == other {
				return true, nil
			}
			if seen[key] {
				continue
			}
			seen[key] = true
			next := &kustomizev1.Kustomization{}
			if one, arrives := o.arrivals[key]; arrives {
				all = append(all, one.as)
			} else if err := o.hub.Get(ctx, key, next); client.IgnoreNotFound(err) != nil {
				return false, fmt.Errorf("read the Kustomization %s: %w", key, err)
			} else if err == nil {
				all = append(all, next)
			}
		}
	}
	return false, nil
}

// stuck reports whether a Kustomization says that it waits for others, and one of these, or of those for which they wait, does not exist
// or does not become ready by itself. What is only about to say so is not judged: a commit may be making what it depends on.
func (o order) stuck(ctx context.Context, ks *kustomizev1.Kustomization, at siblings.Artifact) (bool, error) {
	ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
	if ks.DeletionTimestamp != nil || ready == nil || ready.Reason != meta.DependencyNotReadyReason || ready.ObservedGeneration != ks.Generation {
		return false, nil
	}
	seen, all := map[client.ObjectKey]bool{}, []*kustomizev1.Kustomization{ks}
	for i := 0; i < len(all); i++ {
		for _, ref := range all[i].Spec.DependsOn {
			key := dependencies.Key(all[i], ref)
			next, err := o.read(ctx, key)
			_, arrives := o.arrivals[key]
			switch {
			case apierrors.IsNotFound(err) && arrives:
				continue
			case apierrors.IsNotFound(err):
				return true, nil
			case err != nil:
				return false, err
			case ref.ReadyExpr != "" || has(next, at): // what an expression waits for nobody can tell
			case standsStill(next, at):
				return true, nil
			case !seen[key]:
				seen[key] = true
				all = append(all, next)
			}
		}
	}
	return false, nil
}

// has reports whether a dependency is ready: at an artifact, if it is of the same source.
func has(dep *kustomizev1.Kustomization, at siblings.Artifact) bool {
	if inventory.SourceOf(dep) == at.Source && dep.Status.LastAppliedRevision != at.Revision {
		return false
	}
	return dep.Status.ObservedGeneration == dep.Generation && apimeta.IsStatusConditionTrue(dep.Status.Conditions, meta.ReadyCondition)
}

// standsStill reports whether a dependency that is not ready does not become so before somebody sees to it.
func standsStill(dep *kustomizev1.Kustomization, at siblings.Artifact) bool {
	if inventory.SourceOf(dep) == at.Source {
		return dep.Spec.Suspend || refuses(dep, at)
	}
	stalled := apimeta.FindStatusCondition(dep.Status.Conditions, meta.StalledCondition)
	return dep.Spec.Suspend || stalled != nil && stalled.Status == metav1.ConditionTrue && stalled.ObservedGeneration == dep.Generation
}
