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

// besides is how long the binding loop waits for the execution loop to end Works along with their binding.
const besides = 10 * time.Second

// beside returns the Works of a deleted binding that need not be deleted,
// since the execution loop ends them, and how long to wait for that. The binding
// has to stay until then, as its deletion timestamp is what that loop goes by. Works of clusters that do not answer, of
// clusters in pull mode, and those that still exist after besides have to be deleted.
func (p writer) beside(ctx context.Context, s *state) ([]*workv1alpha1.Work, time.Duration, error) {
	if s.binding == nil || p.ends == nil {
		return nil, 0, nil
	}
	age := p.clock.Since(s.binding.GetDeletionTimestamp().Time)
	if age < -time.Second || age >= besides { // clocks differ, or it took too long
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
