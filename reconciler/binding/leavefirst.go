package binding

import (
	"context"
	"errors"
	"slices"
	"strings"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// unleft is why something does not start in a cluster, or gets no more replicas there: other clusters have not removed their copies, and
// will not soon.
type unleft struct {
	what  string
	from  []string
	heard bool // of those clusters
}

func (u *unleft) Error() string {
	text := u.what + " before the copy has left " + strings.Join(u.from, ", ")
	if !u.heard {
		text += ", of which nothing is heard"
	}
	return text + ": two must never run at once (failover.cluster.purgeMode: Directly). A cluster that will not be back is given up by flotilla unjoin"
}

// leaveFirst removes the Works in clusters that have to be left before anything starts elsewhere, and the plans of what waits for that;
// where it takes long, each gets a fault.
func leaveFirst(ctx context.Context, p writer, s *state) error {
	spec := s.binding.BindingSpec()
	from := plan.Leaving(spec, s.works)
	if len(from) == 0 || slices.ContainsFunc(s.plans, func(w plan.WorkPlan) bool { return errors.As(w.Err, new(*plan.HeldError)) }) {
		return nil // or else it could not be made anew
	}
	away := once(awayFrom(ctx, p))
	may := worksIn(s.works, plan.MayLeaveFirst(spec, away)...)
	for _, w := range may { // before they are deleted, so that no deletion is seen without it
		if w.Annotations[workv1alpha2.LeavesFirstAnnotation] != "" || p.written.Leaving(w) {
			continue
		}
		if err := p.claims.annotate(ctx, w, workv1alpha2.LeavesFirstAnnotation, "true", "a copy leaves before another one starts"); err != nil {
			return err
		}
	}
	if err := p.remove(ctx, may); err != nil {
		return err
	}
	late := slices.DeleteFunc(slices.Clone(from), func(cluster string) bool {
		return !away(cluster) && !slices.ContainsFunc(worksIn(s.works, cluster), func(w *workv1alpha1.Work) bool {
			return w.DeletionTimestamp != nil && p.clock.Since(w.DeletionTimestamp.Time) > formerGoes
		})
	})
	waits := func(cluster, what string) {
		if s.awaits = formerGoes; len(late) > 0 {
			s.failed = append(s.failed, fault{cluster, loop.Waiting(workv1alpha2.EventReasonSyncWorkFailed, formerGoes,
				&unleft{what: what, from: late, heard: !slices.ContainsFunc(late, away)})})
		}
	}
	s.plans = slices.DeleteFunc(s.plans, func(w plan.WorkPlan) bool {
		// One that goes there counts as gone, although it might be kept.
		starts := !slices.ContainsFunc(worksIn(s.works, w.Cluster), func(w *workv1alpha1.Work) bool { return !p.written.Leaving(w) })
		if starts {
			waits(w.Cluster, "nothing starts")
		}
		return starts
	})
	for _, cluster := range s.grow {
		waits(cluster, "no more replicas start")
	}
	return nil
}

// awaitsPerson reports whether an error is that a copy has yet to leave a cluster, which may take as long as somebody lets it.
func awaitsPerson(err error) bool {
	return errors.As(err, new(*former)) || errors.As(err, new(*unleft))
}
