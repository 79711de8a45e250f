package apply

import (
	"context"
	"errors"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/dependency"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/expression"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
)

// awaitDependencies ends a run while a dependency is not ready. The loop also
// hears of it when one becomes so.
func (p prerequisites) awaitDependencies(ctx context.Context, s *state) (loop.Next, error) {
	if len(s.ks.Spec.DependsOn) == 0 {
		return loop.Next{}, nil
	}
	read, budget := p.reader(s), expression.NewBudget(allReadiness)
	if err := findCycle(ctx, s, read); err != nil {
		return loop.Next{}, err
	}
	for i, ref := range s.ks.Spec.DependsOn {
		why, err := p.unready(ctx, s, i, read, budget)
		if err != nil {
			return loop.Next{}, err
		}
		if why != "" {
			return loop.Next{}, loop.Waiting(meta.DependencyNotReadyReason, soon, fmt.Errorf("dependency %s %s", dependencyKey(s.ks, ref), why))
		}
	}
	return loop.Next{}, nil
}

// readDependency reads a Kustomization that a run depends on.
type readDependency func(ctx context.Context, key client.ObjectKey) (*kustomizev1.Kustomization, error)

// reader reads those of the run's namespace from the cache, and those of others as
// the run's account, each once.
func (p prerequisites) reader(s *state) readDependency {
	type answer struct {
		ks  *kustomizev1.Kustomization
		err error
	}
	known := map[client.ObjectKey]answer{}
	return func(ctx context.Context, key client.ObjectKey) (*kustomizev1.Kustomization, error) {
		if a, asked := known[key]; asked {
			return a.ks, a.err
		}
		a, from := answer{ks: &kustomizev1.Kustomization{}}, p.hub
		if key.Namespace != s.ks.Namespace && !s.actor.Privileged() {
			from = s.actor
		}
		a.err = from.Get(ctx, key, a.ks)
		known[key] = a
		return a.ks, a.err
	}
}

// findCycle stalls a Kustomization that waits for itself, by whatever way that its
// account may see.
func findCycle(ctx context.Context, s *state, read readDependency) error {
	reached := map[client.ObjectKey]bool{s.owner: true}
	all := []dependency.Dependent{s.ks}
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
			next, err := read(ctx, key)
			if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
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
func (p prerequisites) unready(ctx context.Context, s *state, i int, read readDependency, budget *expression.Budget) (string, error) {
	ref := s.ks.Spec.DependsOn[i]
	dep, err := read(ctx, dependencyKey(s.ks, ref))
	switch {
	case apierrors.IsForbidden(err):
		return "may not be looked at: " + s.actor.Explained(err).Error(), nil
	case apierrors.IsNotFound(err):
		return "does not exist", nil
	case err != nil:
		return "", fmt.Errorf("read the dependency %s: %w", dependencyKey(s.ks, ref), err)
	case ref.ReadyExpr != "":
		return p.byExpression(ctx, s.ks, dep, i, budget)
	}
	ready := apimeta.FindStatusCondition(dep.Status.Conditions, meta.ReadyCondition)
	same := dep.Spec.SourceRef.Kind == s.source.kind && siblings.SourceOf(dep) == s.source.key
	switch {
	case same && ready != nil && ready.Reason == ReasonHandingOver && ready.ObservedGeneration == dep.Generation && dep.Status.LastAttemptedRevision == s.source.revision:
		return "", nil // it stands, and may wait for this one
	case dep.Status.ObservedGeneration != dep.Generation, ready == nil, ready.Status != metav1.ConditionTrue:
		return "is not ready", nil
	case same && dep.Status.LastAppliedRevision != s.source.revision:
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

// allReadiness is what the readiness expressions of one run may cost together, to be
// read and to be evaluated: about half a second.
const allReadiness = 5_000_000

// byExpression evaluates a readiness expression over "self" and "dep".
func (p prerequisites) byExpression(ctx context.Context, self, dep *kustomizev1.Kustomization, i int, budget *expression.Budget) (string, error) {
	field, text := fmt.Sprintf("spec.dependsOn[%d].readyExpr", i), self.Spec.DependsOn[i].ReadyExpr
	expr, err := p.expressions.Compile(ctx, text, budget, "self", "dep")
	if err != nil {
		return "", health.ExpressionError(field, err)
	}
	vars := map[string]any{}
	for name, ks := range map[string]*kustomizev1.Kustomization{"self": self, "dep": dep} {
		if vars[name], err = runtime.DefaultUnstructuredConverter.ToUnstructured(ks); err != nil {
			return "", fmt.Errorf("read %s: %w", name, err)
		}
	}
	ready, err := expr.Bool(ctx, vars, budget)
	if errors.Is(err, expression.ErrFailed) {
		return fmt.Sprintf("is not ready: %s: %s", field, err), nil
	}
	if err != nil {
		return "", health.ExpressionError(field, err)
	}
	if !ready {
		return "is not ready by its readyExpr", nil
	}
	return "", nil
}
