package request

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// dependencies checks whether the dependencies of a Kustomization may still become ready by themselves. Those that
// cannot be read count as if they may.
type dependencies struct {
	hub client.Reader
	met map[client.ObjectKey]bool
}

// stuck returns which dependency of a Kustomization will not become ready without a person, and what is wrong with
// it; empty if all may become ready.
func (d dependencies) stuck(ctx context.Context, ks *kustomizev1.Kustomization) string {
	d.met[client.ObjectKeyFromObject(ks)] = true
	for _, ref := range ks.Spec.DependsOn {
		key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
		if key.Namespace == "" {
			key.Namespace = ks.Namespace
		}
		if d.met[key] || ref.ReadyExpr != "" { // an expression defines what it waits for
			continue
		}
		if why := d.lasting(ctx, ks, key); why != "" {
			return why
		}
	}
	return ""
}

// lasting returns what is wrong with one dependency of ks; empty if that may pass.
func (d dependencies) lasting(ctx context.Context, ks *kustomizev1.Kustomization, key client.ObjectKey) string {
	dep := &kustomizev1.Kustomization{}
	err := d.hub.Get(ctx, key, dep)
	if apierrors.IsNotFound(err) && d.madeAll(ctx, ks) {
		return fmt.Sprintf("commit Kustomization %s, or correct spec.dependsOn of %s", key, client.ObjectKeyFromObject(ks))
	}
	ready := apimeta.FindStatusCondition(dep.Status.Conditions, meta.ReadyCondition)
	switch {
	case err != nil:
		return ""
	case dep.Spec.Suspend && !(apimeta.IsStatusConditionTrue(dep.Status.Conditions, meta.ReadyCondition) && (inventory.SourceOf(dep) != inventory.SourceOf(ks) || d.tried(ctx, dep))):
		return fmt.Sprintf("Kustomization %s is suspended: flotilla resume kustomization %s -n %s", key, key.Name, key.Namespace)
	case ready == nil || ready.Status != metav1.ConditionFalse || ready.ObservedGeneration != dep.Generation:
		return ""
	case ready.Reason == meta.DependencyNotReadyReason:
		return d.stuck(ctx, dep)
	case ready.Reason == meta.ReconciliationFailedReason, ready.Reason == meta.ArtifactFailedReason, !d.tried(ctx, dep):
		return ""
	default:
		return fmt.Sprintf("Kustomization %s: %s: %s", key, ready.Reason, ready.Message)
	}
}

// tried reports whether a Kustomization has tried the latest revision of its source.
func (d dependencies) tried(ctx context.Context, ks *kustomizev1.Kustomization) bool {
	source, err := origins.Read(ctx, d.hub, inventory.SourceOf(ks))
	return err == nil && source.GetArtifact() != nil && ks.Status.LastAttemptedRevision == origins.Revision(source)
}

// madeAll reports whether the Kustomization that applied ks, if there is one, has finished the latest revision: before
// that, it may still create others.
func (d dependencies) madeAll(ctx context.Context, ks *kustomizev1.Kustomization) bool {
	key, owned := inventory.OwnerOf(ks)
	if !owned {
		return true
	}
	parent := &kustomizev1.Kustomization{}
	if err := d.hub.Get(ctx, key, parent); err != nil {
		return apierrors.IsNotFound(err)
	}
	ready := apimeta.FindStatusCondition(parent.Status.Conditions, meta.ReadyCondition)
	return ready != nil && ready.Status != metav1.ConditionUnknown && d.tried(ctx, parent)
}
