package binding

import (
	"context"
	"slices"
	"time"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// besides is for how long Works are left to whoever ends them as their binding goes.
const besides = 10 * time.Second

// beside returns the Works of a binding that is being deleted which need not be deleted,
// since they are ended where they are carried, and how long to wait for that. The binding
// stays until then: it is what says that they go. Those of clusters that do not answer, of
// pull mode, or that are there still after a while have to be deleted.
func (p writer) beside(ctx context.Context, s *state) ([]*workv1alpha1.Work, time.Duration, error) {
	if s.binding == nil || p.ends == nil {
		return nil, 0, nil
	}
	age := p.clock.Since(s.binding.GetDeletionTimestamp().Time)
	if age < -time.Second || age >= besides { // a clock that was off, or too long
		return nil, 0, nil
	}
	keeps := plan.Keeps(plan.SpecOf(s.binding))
	var out []*workv1alpha1.Work
	for _, w := range s.works {
		name, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
		if !ok || !slices.Contains(keeps, name) || p.written.Leaving(w) || !bindings.EndsBeside(w) {
			continue
		}
		cluster, found, err := p.cluster(ctx, name)
		if err != nil {
			return nil, 0, err
		}
		if found && p.ends(cluster) {
			out = append(out, w)
		}
	}
	return out, besides - age, nil
}
