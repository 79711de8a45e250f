// Package dependencies finds out whether the dependencies of a Kustomization are ready.
//
// In go a Kustomization, who acts for it, and the artifact that it is to apply; out comes which of its
// dependencies is not ready, and why. Those in other namespaces are read as the account. It writes nothing.
package dependencies

import (
	"context"
	"errors"
	"fmt"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/expression"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/hint"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/refusals"
)

// ReasonCycle says that Kustomizations wait for each other.
const ReasonCycle = refusals.DependencyCycle

// Checker looks at dependencies. Use New.
type Checker struct {
	hub         client.Reader
	expressions *expression.Compiler
}

// New returns a Checker; hub reads from a cache.
func New(hub client.Reader) Checker {
	return Checker{hub: hub, expressions: expression.NewCompiler(expression.Limits{})}
}

// Query asks for the dependencies of one Kustomization.
type Query struct {
	Of *kustomizev1.Kustomization
	// Actor is who acts for it.
	Actor impersonation.Actor
	// At is the artifact that it is to apply.
	At siblings.Artifact
}

// Unready returns a text that names the first dependency that is not ready, and why; empty if all are. The error is
// of class loop.ClassStalled if Kustomizations wait for each other in a circle.
func (p Checker) Unready(ctx context.Context, q Query) (string, error) {
	read, budget := p.reader(q), expression.NewBudget(allReadiness)
	if err := FindCycle(ctx, q.Of, read); err != nil {
		return "", err
	}
	for i, ref := range q.Of.Spec.DependsOn {
		why, err := p.unready(ctx, q, i, read, budget)
		if err != nil {
			return "", err
		}
		if why != "" {
			return fmt.Sprintf("dependency %s %s", Key(q.Of, ref), why), nil
		}
	}
	return "", nil
}

// Read reads a Kustomization that another one depends on.
type Read func(ctx context.Context, key client.ObjectKey) (*kustomizev1.Kustomization, error)

// reader returns a function that reads each dependency once: from the cache if it is in the namespace of the
// Kustomization, and else as its account, as it must not learn more of other namespaces than that may read.
func (p Checker) reader(q Query) Read {
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
		if key.Namespace != q.Of.Namespace && !q.Actor.Privileged() {
			from = q.Actor
		}
		a.err = from.Get(ctx, key, a.ks)
		known[key] = a
		return a.ks, a.err
	}
}

// unready returns why the dependency spec.dependsOn[i] is not ready; empty if it is.
func (p Checker) unready(ctx context.Context, q Query, i int, read Read, budget *expression.Budget) (string, error) {
	ref := q.Of.Spec.DependsOn[i]
	dep, err := read(ctx, Key(q.Of, ref))
	switch {
	case apierrors.IsForbidden(err):
		return barred + q.Actor.Explained(err).Error(), nil
	case apierrors.IsNotFound(err):
		return "does not exist" + propagation.DidYouMean(hint.Dependency(ctx, p.hub, q.Of, Key(q.Of, ref))), nil
	case err != nil:
		return "", fmt.Errorf("read the dependency %s: %w", Key(q.Of, ref), err)
	case ref.ReadyExpr != "":
		return p.byExpression(ctx, q.Of, dep, i, budget)
	}
	ready := apimeta.FindStatusCondition(dep.Status.Conditions, meta.ReadyCondition)
	same := inventory.SourceOf(dep) == q.At.Source
	switch {
	case same && ready != nil && ready.Reason == siblings.ReasonHandingOver && ready.ObservedGeneration == dep.Generation && dep.Status.LastAttemptedRevision == q.At.Revision:
		return "", nil // it is applied, and may in turn wait for this one to take objects over
	case dep.Spec.Suspend && same && dep.Status.LastAppliedRevision != q.At.Revision:
		return fmt.Sprintf("is suspended, and has not applied revision %s", q.At.Revision), nil
	case dep.Status.ObservedGeneration != dep.Generation, ready == nil:
		return "is not ready", nil
	case ready.Status != metav1.ConditionTrue:
		return "is not ready" + because(ready, dep.Spec.Suspend), nil
	case same && dep.Status.LastAppliedRevision != q.At.Revision:
		return "has not applied revision " + q.At.Revision + " yet", nil
	default:
		return "", nil
	}
}

// barred begins the text about a dependency that the account may not read.
const barred = "may not be looked at: "

// Barred reports whether a text of Unready says that a dependency may not be looked at, so that somebody has to give rights.
func Barred(text string) bool { return strings.Contains(text, " "+barred) }

// because returns why a dependency is not ready, to be added to a text. It is empty for one that is progressing.
func because(ready *metav1.Condition, suspended bool) string {
	switch {
	case suspended:
		return ", and suspended (" + ready.Reason + ")"
	case ready.Reason == meta.ProgressingReason:
		return ""
	default:
		return " (" + ready.Reason + ")"
	}
}

// Key returns the name of what a reference of ks names.
func Key(ks *kustomizev1.Kustomization, ref kustomizev1.DependencyReference) client.ObjectKey {
	if ref.Namespace == "" {
		return client.ObjectKey{Namespace: ks.Namespace, Name: ref.Name}
	}
	return client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
}

// Keys returns the names of all Kustomizations that ks depends on, in its order.
func Keys(ks *kustomizev1.Kustomization) []client.ObjectKey {
	keys := make([]client.ObjectKey, 0, len(ks.Spec.DependsOn))
	for _, ref := range ks.Spec.DependsOn {
		keys = append(keys, Key(ks, ref))
	}
	return keys
}

// allReadiness is what the readiness expressions of one run may cost together, in units of expression.Budget, to be
// compiled and evaluated. It is about half a second.
const allReadiness = 5_000_000

// byExpression evaluates a readiness expression over "self" and "dep".
func (p Checker) byExpression(ctx context.Context, self, dep *kustomizev1.Kustomization, i int, budget *expression.Budget) (string, error) {
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
