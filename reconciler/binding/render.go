package binding

import (
	"context"
	"errors"
	"fmt"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// renderer decides what each cluster should hold.
type renderer struct {
	cluster     func(ctx context.Context, name string) (*clusterv1alpha1.Cluster, bool, error)
	overrides   func(ctx context.Context, s *state) (found []policyv1alpha1.Override, next loop.Next)
	interpreter *interpreter.Interpreter
	quotas      func(ctx context.Context, namespace string) ([]*policyv1alpha1.FederatedResourceQuota, error)
}

// render sets the plans: those of what clusters have, where the template is held, or it is not known which overrides apply. It ends
// the pass if the placement is about to change. A plan that cannot be rendered has an error, which does not affect the others.
func (p renderer) render(ctx context.Context, s *state) (loop.Next, error) {
	overrides, next := p.overrides(ctx, s)
	if next.Done && next.After > 0 {
		return next, nil
	}
	unknown := next.Done
	s.held = s.held || unknown
	quotas, err := p.quotas(ctx, s.binding.GetNamespace())
	if err != nil {
		return loop.Next{}, err
	}
	var unread error
	in := plan.WorksInput{
		Binding:  s.binding,
		Template: s.template,
		Cluster: func(name string) (*clusterv1alpha1.Cluster, bool) {
			c, found, err := p.cluster(ctx, name)
			unread = errors.Join(unread, err)
			return c, found
		},
		Overrides:   overrides,
		Interpreter: p.interpreter,
		Quotas:      quotas,
	}
	in, s.grow = plan.Limited(in, s.works)
	if s.held {
		s.plans, err = plan.Held(in, s.works, unknown)
	} else {
		s.plans, err = plan.Works(in)
	}
	if err := errors.Join(err, unread); err != nil {
		return loop.Next{}, fmt.Errorf("render the works: %w", err)
	}
	return loop.Next{}, nil
}
