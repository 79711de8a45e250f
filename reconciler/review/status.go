package review

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
	"github.com/flotilla-io/flotilla/sources/forge"
)

// faults collects what kept pull requests from being reviewed.
type faults struct {
	mu  sync.Mutex
	all []error
}

func (f *faults) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, err)
}

// limited reports whether the forge has said that it takes no more for a while.
func (f *faults) limited() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	var limit *forge.RateLimitError
	return slices.ContainsFunc(f.all, func(err error) bool { return errors.As(err, &limit) })
}

// err returns all of them as one, and nil for none. It waits as long as the one that has to wait longest.
func (f *faults) err(interval time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 0 {
		return nil
	}
	var texts []string
	reason, after := "", interval
	for _, err := range f.all {
		texts = append(texts, foreign(err))
		e := loop.As(err, gitopsv1alpha1.ReviewReasonNotTold)
		if after = max(after, e.After); reason == "" {
			reason = e.Reason
		}
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	text := texts[0]
	if more := len(texts) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return loop.Waiting(reason, after, errors.New(text))
}

// mostCondition is how long the message of the condition is, in bytes.
const mostCondition = 1000

// statusWriter writes the statuses of PullRequestReviews. Nothing else does.
type statusWriter struct {
	hub client.Client
	// written is what was written last, of which the cache may not know yet.
	written *writecache.Cache[*gitopsv1alpha1.PullRequestReview]
}

// enforced writes how far the source has its approvals as soon as that is known: Kustomizations wait for it.
func (w statusWriter) enforced(ctx context.Context, s *state) (loop.Next, error) {
	if apiequality.Semantic.DeepEqual(s.before.Status.Enforced, s.object.Status.Enforced) {
		return loop.Next{}, nil
	}
	return loop.Next{}, w.write(ctx, s)
}

// write writes the status, if anything in it has changed.
func (w statusWriter) write(ctx context.Context, s *state) error {
	if apiequality.Semantic.DeepEqual(s.before.Status, s.object.Status) {
		return nil
	}
	if err := w.hub.Status().Patch(ctx, s.object, client.MergeFrom(s.before)); err != nil {
		return fmt.Errorf("write what was reviewed: %w", err)
	}
	s.before = s.object.DeepCopy()
	w.written.Wrote(s.before)
	return nil
}

// report writes what the pass has found out.
func (r *Reconciler) report(ctx context.Context, s *state, next loop.Next, err error) (reconcile.Result, error) {
	if err == nil {
		err = s.faults.err(s.interval())
	}
	status := &s.object.Status
	status.ObservedGeneration, status.LastHandledReconcileAt = s.object.Generation, handled(s.object)
	condition := metav1.Condition{Type: fluxmeta.ReadyCondition, Status: metav1.ConditionTrue, Reason: gitopsv1alpha1.ReviewReasonSucceeded, Message: counts(status.PullRequests), ObservedGeneration: s.object.Generation}
	condition.LastTransitionTime = metav1.NewTime(r.opts.Clock.Now())
	e := loop.As(err, gitopsv1alpha1.ReviewReasonNotTold)
	if e != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, e.Reason, excerpt.Message(e.Error(), mostCondition)
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	if err := r.statuses.write(ctx, s); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	switch {
	case e == nil && next.After > 0:
		return reconcile.Result{RequeueAfter: min(next.After, s.interval())}, nil
	case e == nil:
		return reconcile.Result{RequeueAfter: s.interval()}, nil
	case e.Class == loop.ClassStalled:
		return reconcile.Result{}, nil
	default: // a forge that is down is asked as often as one that is not
		return reconcile.Result{RequeueAfter: max(e.After, s.interval())}, nil
	}
}

// counts says how many pull requests are in which phase.
func counts(all []gitopsv1alpha1.ReviewedPullRequest) string {
	if len(all) == 0 {
		return "no pull request is open"
	}
	number := map[gitopsv1alpha1.ReviewPhase]int{}
	for i := range all {
		number[all[i].Phase]++
	}
	var out []string
	for _, phase := range []struct {
		of   gitopsv1alpha1.ReviewPhase
		word string
	}{{gitopsv1alpha1.ReviewPassed, "passed"}, {gitopsv1alpha1.ReviewFailed, "failed"}, {gitopsv1alpha1.ReviewAwaiting, "awaiting approval"}, {gitopsv1alpha1.ReviewPending, "pending"}, {gitopsv1alpha1.ReviewNot, "not reviewed"}} {
		if n := number[phase.of]; n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, phase.word))
		}
	}
	return "pull requests: " + strings.Join(out, ", ")
}
