package binding

import (
	"context"
	"fmt"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// renderer decides what each cluster should hold.
type renderer struct {
	clusters    func(ctx context.Context) (placement.Snapshot, error)
	overrides   func(ctx context.Context, namespace string) ([]policyv1alpha1.Override, error)
	interpreter *interpreter.Interpreter
}

// run sets the plans. One that cannot be made carries its error and leaves the
// others alone.
func (p renderer) run(ctx context.Context, s *state) (loop.Next, error) {
	snap, err := p.clusters(ctx)
	if err != nil {
		return loop.Next{}, err
	}
	overrides, err := p.overrides(ctx, s.template.GetNamespace())
	if err != nil {
		return loop.Next{}, err
	}
	s.plans, err = plan.Works(plan.WorksInput{
		Binding:     s.binding,
		Template:    s.template,
		Cluster:     snap.Cluster,
		Overrides:   overrides,
		Interpreter: p.interpreter,
	})
	if err != nil {
		return loop.Next{}, fmt.Errorf("render the works: %w", err)
	}
	return loop.Next{}, nil
}
