package binding

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// formerGoes is how long to wait at most for a former copy to go, whose end is an event.
const formerGoes = 30 * time.Second

// former is why nothing starts: clusters have a copy still that an earlier template of the name left there.
type former struct{ clusters []string }

func (f *former) Error() string {
	return fmt.Sprintf("nothing starts before the copy of an earlier template of this name has left %s: two must never run at once (failover.cluster.purgeMode: Directly). One that is away and will not be back is given up by flotilla unjoin",
		strings.Join(f.clusters, ", "))
}

// formerOf returns the phase awaitFormer of a writer.
func formerOf(p writer) func(context.Context, *state) (loop.Next, error) {
	return func(ctx context.Context, s *state) (loop.Next, error) { return awaitFormer(ctx, p, s) }
}

// awaitFormer ends the pass while a template that must never run twice has nothing in any cluster, and another one, that
// was deleted, has a copy where this one is not placed, as in a cluster that is away. Such copies go as soon as they can.
func awaitFormer(ctx context.Context, p writer, s *state) (loop.Next, error) {
	spec := s.binding.BindingSpec()
	if !eviction.Directly(spec) || slices.ContainsFunc(s.works, func(w *workv1alpha1.Work) bool { return !p.written.Leaving(w) }) {
		return loop.Next{}, nil
	}
	works, err := p.recalls.Leaving(ctx, s.key)
	keeps, in := plan.Keeps(plan.SpecOf(s.binding)), []string{}
	for _, w := range works {
		name, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
		if !ok || slices.Contains(keeps, name) || bindings.IDOf(w) == s.binding.GetLabels()[bindings.IDLabel(s.binding)] {
			continue
		}
		switch _, found, err := p.cluster(ctx, name); {
		case err != nil:
			return loop.Next{}, fmt.Errorf("read the cluster %s: %w", name, err)
		case found:
			in = append(in, name)
		}
	}
	if len(in) == 0 || err != nil {
		return loop.Next{}, err
	}
	if _, err := p.recalls.Decide(ctx, s.key, "", keeps...); err != nil {
		return loop.Next{}, err
	}
	slices.Sort(in)
	return loop.Next{}, loop.Waiting(workv1alpha2.EventReasonSyncWorkFailed, formerGoes, &former{in})
}
