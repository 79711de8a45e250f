package apply

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/cel"
	"github.com/fluxcd/pkg/runtime/dependency"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
)

// awaitDependencies ends a run while a dependency is not ready. The loop also
// hears of it when one becomes so.
func (p prerequisites) awaitDependencies(ctx context.Context, s *state) (loop.Next, error) {
	if len(s.ks.Spec.DependsOn) == 0 {
		return loop.Next{}, nil
	}
	if err := p.findCycle(ctx, s.ks); err != nil {
		return loop.Next{}, err
	}
	for _, ref := range s.ks.Spec.DependsOn {
		why, err := p.unready(ctx, s, ref)
		if err != nil {
			return loop.Next{}, err
		}
		if why != "" {
			return loop.Next{}, loop.Waiting(meta.DependencyNotReadyReason, soon, fmt.Errorf("dependency %s %s", dependencyKey(s.ks, ref), why))
		}
	}
	return loop.Next{}, nil
}

// findCycle stalls a Kustomization that waits for itself, by whatever way.
func (p prerequisites) findCycle(ctx context.Context, ks *kustomizev1.Kustomization) error {
	reached := map[client.ObjectKey]bool{client.ObjectKeyFromObject(ks): true}
	all := []dependency.Dependent{ks}
	for i := 0; i < len(all); i++ {
		for _, ref := range all[i].GetDependsOn() {
			key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
			if key.Namespace == "" {
				key.Namespace = all[i].GetNamespace()
			}
			if reached[key] {
				continue
			}
			reached[key] = true
			next := &kustomizev1.Kustomization{}
			err := p.hub.Get(ctx, key, next)
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("read the dependency %s: %w", key, err)
			}
			if err == nil {
				all = append(all, next)
			}
		}
	}
	if _, err := dependency.Sort(all); err != nil {
		return loop.Stalled(ReasonDependencyCycle, fmt.Errorf("%w: remove one spec.dependsOn of these", err))
	}
	return nil
}

// unready says why a dependency is not ready, or nothing.
func (p prerequisites) unready(ctx context.Context, s *state, ref kustomizev1.DependencyReference) (string, error) {
	dep := &kustomizev1.Kustomization{}
	err := p.hub.Get(ctx, dependencyKey(s.ks, ref), dep)
	switch {
	case apierrors.IsNotFound(err):
		return "does not exist", nil
	case err != nil:
		return "", fmt.Errorf("read the dependency %s: %w", dependencyKey(s.ks, ref), err)
	case ref.ReadyExpr != "":
		return byExpression(ctx, s.ks, dep, ref.ReadyExpr)
	}
	ready := apimeta.FindStatusCondition(dep.Status.Conditions, meta.ReadyCondition)
	switch {
	case dep.Status.ObservedGeneration != dep.Generation, ready == nil, ready.Status != metav1.ConditionTrue:
		return "is not ready", nil
	case dep.Spec.SourceRef.Kind == s.source.kind && sourceKey(dep) == s.source.key && dep.Status.LastAppliedRevision != s.source.revision:
		return "has not applied revision " + s.source.revision + " yet", nil
	default:
		return "", nil
	}
}

func dependencyKey(ks *kustomizev1.Kustomization, ref kustomizev1.DependencyReference) client.ObjectKey {
	if ref.Namespace == "" {
		return client.ObjectKey{Namespace: ks.Namespace, Name: ref.Name}
	}
	return client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
}

// byExpression evaluates a readiness expression over "self" and "dep".
func byExpression(ctx context.Context, self, dep *kustomizev1.Kustomization, text string) (string, error) {
	expr, err := cel.NewExpression(text, cel.WithCompile(), cel.WithStructVariables("self", "dep"))
	if err != nil {
		return "", loop.Stalled(meta.InvalidCELExpressionReason, fmt.Errorf("spec.dependsOn: %w", err))
	}
	vars := map[string]any{}
	for name, ks := range map[string]*kustomizev1.Kustomization{"self": self, "dep": dep} {
		if vars[name], err = runtime.DefaultUnstructuredConverter.ToUnstructured(ks); err != nil {
			return "", fmt.Errorf("read %s: %w", name, err)
		}
	}
	ready, err := expr.EvaluateBoolean(ctx, vars)
	if err != nil {
		return "is not ready: " + err.Error(), nil
	}
	if !ready {
		return "is not ready by its readyExpr", nil
	}
	return "", nil
}
