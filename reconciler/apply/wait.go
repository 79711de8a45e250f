package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/observation"
	"github.com/flotilla-io/flotilla/reconciler/apply/watches"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

const (
	// handoverPoll is the pause before a check whether a sibling has taken what it wants, if the watch missed it.
	handoverPoll = 5 * time.Second
	// definitionsPoll is the pause before looking again whether a new kind is served.
	definitionsPoll = 500 * time.Millisecond
	// healthPoll is the pause before looking again at what is not healthy yet. A change of a binding starts a run sooner.
	healthPoll = 2 * time.Second
	// silentPoll is the pause before looking again at what leaves silent clusters.
	silentPoll = 10 * time.Second
	// silentCheck is the pause before looking again at what runs there; that a cluster is back starts a run sooner.
	silentCheck = 5 * time.Minute
	// namedAfter is how long no message names what the health check waits for: most becomes healthy by then.
	namedAfter = 10 * time.Second
	// longestRun bounds a run, whatever the Kustomization's timeout is. The wait for
	// health does not count, as it happens between runs.
	longestRun = time.Hour
	// namedUnhealthy is how many objects a message names.
	namedUnhealthy = 3
)

// wait is what the run waits for; the zero value is nothing.
type wait struct {
	text string
	// silent says that it waits for silent clusters, and for nothing else.
	silent bool
	// failed is why the health check failed, or which object is missing; nil for neither.
	failed error
	// aside is added to messages about health; see health.Assessment.Aside.
	aside string
	// assessed says that the run has found out the health.
	assessed bool
}

// over reports whether the health check is complete, except perhaps for silent clusters.
func (w wait) over() bool { return w.failed == nil && (w.text == "" || w.silent) }

// reportHealth is the phase that ends a run whose health check failed. It is the last one, so that the others run before.
func reportHealth(_ context.Context, s *state) (loop.Next, error) {
	return loop.Next{}, s.waiting.failed
}

// assessHealth checks the health of a revision that is applied, if the Kustomization asks for it. It does not
// block: the loop runs again when a binding changes, and a newer revision is not held up. What is ready is assessed
// again only if it is in doubt, and from caches.
func (r *Reconciler) assessHealth(ctx context.Context, s *state) (loop.Next, error) {
	if s.current {
		s.waiting.failed = missingError(s.last, s.now)
	}
	if s.waiting.failed != nil || !health.Checked(s.ks) {
		return loop.Next{}, nil
	}
	doubts, ready := doubt(s.last, false), s.current && readyAt(s)
	if ready && !doubts {
		return loop.Next{}, nil
	}
	next, err := evaluateHealth(ctx, r, s, ready)
	if s.waiting.assessed = err == nil; err != nil {
		doubt(s.last, doubts)
	}
	return next, err
}

// evaluateHealth assesses the health; steady says that nothing was applied lately.
func evaluateHealth(ctx context.Context, r *Reconciler, s *state, steady bool) (loop.Next, error) {
	entries, known := health.Counted(s.ks, s.desired), watches.Templates(nil)
	if steady && !s.diff.at.Remote() {
		known = r.deps.Templates
	}
	observed, err := observation.Read(ctx, s.diff.at.Applier, s.owner, entries, s.desired, known)
	if err != nil {
		return loop.Next{}, err
	}
	most, err := health.MaxUnreachableOf(s.ks)
	if err != nil {
		return loop.Next{}, err
	}
	found, err := r.deps.Assessor.Assess(ctx, health.Request{
		Entries: entries, Observed: observed, As: s.diff.at, Checks: s.ks.Spec.HealthCheckExprs, MaxUnreachable: most, Unchanged: steady, Remote: s.diff.at.Remote(),
		At: health.Revision{Source: s.source.Source, Name: s.source.revision},
	})
	if err != nil {
		return loop.Next{}, err
	}
	s.waiting.aside, s.stale.replaced = found.Aside(), found.Replaced
	pending, silent, failed := health.Split(found.Verdicts)
	switch {
	case len(failed) > 0 && len(pending) == 0:
		s.waiting.failed = unhealthyError(s, "health check failed", failed)
		return loop.Next{}, nil
	case len(pending) == 0 && len(silent) > 0:
		s.waiting = wait{text: "Applied revision " + s.source.revision + "; health is not known: " + health.List(silent, namedUnhealthy), silent: true}
		if health.ReportsSilent(s.ks) {
			return loop.Next{After: silentCheck}, nil
		}
		return loop.Next{After: soon}, nil // who is told that a cluster is back goes by the status, which does not say yet what is waited for
	case len(pending) == 0:
		return loop.Next{}, nil
	}
	left := health.Deadline(s.ks, s.source.revision, s.now).Sub(s.now)
	if left <= 0 {
		s.waiting.failed = unhealthyError(s, health.Lost(s.ks), slices.Concat(failed, pending))
		return loop.Next{}, nil
	}
	s.waiting.text = fmt.Sprintf("Running health checks for revision %s with a timeout of %s", s.source.revision, s.ks.GetTimeout())
	if ready := apimeta.FindStatusCondition(s.ks.Status.Conditions, meta.ReadyCondition); ready != nil && s.ks.GetTimeout()-left >= namedAfter {
		s.waiting.text += health.Waits(pending, ready.Message)
	}
	return loop.Next{After: min(left, healthPoll)}, nil
}

// unhealthyError returns an error that names what is unhealthy. As long as these are
// the same objects, the text stays the same, even if numbers in it change. Its class is
// loop.ClassWaiting, as objects may become healthy by themselves.
func unhealthyError(s *state, what string, verdicts []health.Verdict) error {
	text := s.last.complaint(s.source.revision, health.IDs(verdicts), what+": "+health.List(verdicts, namedUnhealthy), !slices.ContainsFunc(verdicts, func(v health.Verdict) bool { return v.Denied }))
	return loop.Waiting(meta.HealthCheckFailedReason, min(intervals.Retry(s.ks), soon), s.actor.Explained(errors.New(text)))
}

// readyAt reports whether the status has this revision as ready.
func readyAt(s *state) bool {
	return apimeta.IsStatusConditionTrue(s.ks.Status.Conditions, meta.ReadyCondition) && s.ks.Status.LastAppliedRevision == s.source.revision
}

// awaited returns the objects whose changes start a run, failed or not: all of them if something is kept until they are
// applied, those that health.Counted returns while the Kustomization waits for health, and else none.
func (s *state) awaited(failed bool) []inventory.Entry {
	switch {
	case len(s.stale.retained) > 0:
		return health.ButItself(s.ks, s.desired)
	case failed || s.waiting.text != "":
		return health.Counted(s.ks, s.desired)
	default:
		return nil
	}
}
