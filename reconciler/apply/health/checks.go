package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/expression"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

const (
	// maxChecks is how many kinds may be judged by expressions.
	maxChecks = 100
	// allChecks is what the expressions of one assessment may cost together, in units of expression.Budget, to be
	// compiled and evaluated. It is about half a second.
	allChecks = 5_000_000
	// slowRetry is the pause before an expression is tried again that took too long.
	slowRetry = 30 * time.Second
)

// checks judge objects of a kind by expressions.
type checks map[schema.GroupVersionKind]*check

// check are the expressions for one kind, in the order in which they are asked.
type check struct {
	rules  []rule
	budget *expression.Budget
}

// rule is an expression, and what it means if it is true.
type rule struct {
	field string
	means status.Status
	holds *expression.Expression
}

// Listed returns the objects in spec.healthChecks of a Kustomization. References that cannot be parsed are left out.
func Listed(ks *kustomizev1.Kustomization) []inventory.Entry {
	var entries []inventory.Entry
	for _, ref := range ks.Spec.HealthChecks {
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil {
			continue
		}
		entries = append(entries, inventory.Entry{
			ID:      inventory.ID{Namespace: cmp.Or(ref.Namespace, ks.Namespace), Name: ref.Name, GroupKind: gv.WithKind(ref.Kind).GroupKind()},
			Version: gv.Version,
		})
	}
	return entries
}

// Counted returns the objects whose health counts: all that a Kustomization has with spec.wait, and else those in spec.healthChecks.
func Counted(ks *kustomizev1.Kustomization, has []inventory.Entry) []inventory.Entry {
	if ks.Spec.Wait {
		return ButItself(ks, has)
	}
	return ButItself(ks, Listed(ks))
}

// ButItself leaves out the Kustomization itself, which may be among its own objects: it would wait for itself.
func ButItself(ks *kustomizev1.Kustomization, entries []inventory.Entry) []inventory.Entry {
	itself := inventory.OfKustomization(client.ObjectKeyFromObject(ks))
	return slices.DeleteFunc(slices.Clone(entries), func(e inventory.Entry) bool { return e.ID == itself })
}

// compile compiles the expressions of an assessment, which share one budget.
func (r *Reader) compile(ctx context.Context, custom []kustomize.CustomHealthCheck) (checks, error) {
	if len(custom) > maxChecks {
		return nil, loop.Stalled(meta.InvalidCELExpressionReason, fmt.Errorf("spec.healthCheckExprs has %d entries, at most %d are allowed", len(custom), maxChecks))
	}
	out, budget := checks{}, expression.NewBudget(allChecks)
	for i, c := range custom {
		field := fmt.Sprintf("spec.healthCheckExprs[%d]", i)
		if c.Current == "" {
			return nil, loop.Stalled(meta.InvalidCELExpressionReason, fmt.Errorf("%s.current is missing: say when an object is healthy", field))
		}
		all := &check{budget: budget}
		for _, e := range []struct {
			name, text string
			means      status.Status
		}{
			{".inProgress", c.InProgress, status.InProgressStatus},
			{".failed", c.Failed, status.FailedStatus},
			{".current", c.Current, status.CurrentStatus},
		} {
			if e.text == "" {
				continue
			}
			holds, err := r.expressions.Compile(ctx, e.text, budget)
			if err != nil {
				return nil, ExpressionError(field+e.name, err)
			}
			all.rules = append(all.rules, rule{field + e.name, e.means, holds})
		}
		out[schema.FromAPIVersionAndKind(c.APIVersion, c.Kind)] = all
	}
	return out, nil
}

// judge returns the status of an object by the first expression that is true for it. An object
// whose status is of an older generation is in progress.
func (c *check) judge(ctx context.Context, obj *unstructured.Unstructured) (*status.Result, error) {
	observed, known, err := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	if err == nil && known && observed != obj.GetGeneration() && obj.GetGeneration() != 0 {
		return &status.Result{Status: status.InProgressStatus}, nil
	}
	for _, rule := range c.rules {
		holds, err := rule.holds.Bool(ctx, obj.Object, c.budget)
		if err != nil {
			return nil, ExpressionError(rule.field, err)
		}
		if holds {
			return &status.Result{Status: rule.means}, nil
		}
	}
	return &status.Result{Status: status.InProgressStatus}, nil
}

// ExpressionError classifies an error of compiling or evaluating the expression in a field. One that is
// invalid or costs too much stalls, since only another expression mends that; one that took too long is tried
// again. Other errors get no class.
func ExpressionError(field string, err error) error {
	err = fmt.Errorf("%s: %w", field, err)
	switch {
	case errors.Is(err, expression.ErrInvalid), errors.Is(err, expression.ErrCost):
		return loop.Stalled(meta.InvalidCELExpressionReason, err)
	case errors.Is(err, expression.ErrTime):
		return loop.Waiting(meta.HealthCheckFailedReason, slowRetry, err)
	default:
		return err
	}
}

// Checked reports whether a Kustomization asks for its health to be checked.
func Checked(ks *kustomizev1.Kustomization) bool {
	return ks.Spec.Wait || len(ks.Spec.HealthChecks) > 0
}
