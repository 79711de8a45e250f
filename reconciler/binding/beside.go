package binding

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// besides is how long the binding loop waits for the execution loop to end Works along with their binding, or with a move.
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
		if cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace); !ok || !slices.Contains(keeps, cluster) {
			continue
		}
		switch ends, err := endsBeside(ctx, p, w); {
		case err != nil:
			return nil, 0, err
		case ends:
			out = append(out, w)
		}
	}
	return out, besides - age, nil
}

// endsBeside reports whether a Work can be left to the execution loop.
func endsBeside(ctx context.Context, p writer, w *workv1alpha1.Work) (bool, error) {
	name, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
	if !ok || p.ends == nil || p.written.Leaving(w) || !bindings.EndsBeside(w) {
		return false, nil
	}
	cluster, found, err := p.cluster(ctx, name)
	return err == nil && found && p.ends(cluster), err
}

// leavesBeside returns the Works in clusters whose evictions have ended, and that b is not placed in again, which the execution loop
// ends once b says so. A Work of which that is not known is deleted.
func leavesBeside(ctx context.Context, p writer, b workv1alpha2.Binding, works []*workv1alpha1.Work, ended []string) []types.UID {
	keeps := plan.Keeps(plan.SpecOf(b))
	left := slices.DeleteFunc(slices.Clone(ended), func(name string) bool { return slices.Contains(keeps, name) })
	var out []types.UID
	for _, w := range worksIn(works, left...) {
		if ends, err := endsBeside(ctx, p, w); err == nil && ends {
			out = append(out, w.UID)
		}
	}
	return out
}

// leaving returns those of the Works in clusters that were left that have to be deleted: for a while not those of which the
// binding says that the execution loop ends them. How long that is comes with it.
func leaving(ctx context.Context, p writer, b workv1alpha2.Binding, left []*workv1alpha1.Work) (deleted []*workv1alpha1.Work, wait time.Duration, err error) {
	for _, w := range left {
		since := placement.EndsBeside(b, w.UID)
		if since == nil {
			deleted = append(deleted, w)
			continue
		}
		age := p.clock.Since(since.Time)
		ends, err := endsBeside(ctx, p, w)
		switch {
		case err != nil:
			return nil, 0, err
		case !ends || age < -time.Second || age >= besides:
			deleted = append(deleted, w)
		case wait == 0 || besides-age < wait:
			wait = besides - age
		}
	}
	return deleted, wait, nil
}
