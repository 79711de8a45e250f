package binding

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/scheduler"
)

// planError returns what keeps a cluster from getting its Work. An override
// that does not fit needs a person; a cluster that is not known, or not any
// more, is the scheduler's business.
func planError(planned plan.WorkPlan) error {
	if errors.Is(planned.Err, plan.ErrUnknownCluster) {
		return nil
	}
	var wrong *override.Error
	if errors.As(planned.Err, &wrong) {
		return inCluster(planned.Cluster, loop.Stalled(policyv1alpha1.EventReasonApplyOverridePolicyFailed, planned.Err))
	}
	return inCluster(planned.Cluster, loop.Stalled(workv1alpha2.EventReasonSyncWorkFailed, planned.Err))
}

func inCluster(cluster string, err error) error { return fmt.Errorf("cluster %s: %w", cluster, err) }

// joined puts errors together so that the one that must be tried again soonest
// decides what happens next. The text does not depend on their order.
func joined(failed []error) error {
	class := func(err error) loop.Class { return loop.As(err, "").Class }
	for i, err := range failed {
		if class(err) == loop.ClassRetry {
			failed[i] = loop.Retry(workv1alpha2.EventReasonSyncWorkFailed, err)
		}
	}
	slices.SortFunc(failed, func(a, b error) int {
		return cmp.Or(cmp.Compare(class(a), class(b)), cmp.Compare(a.Error(), b.Error()))
	})
	return errors.Join(failed...)
}

// tellFailure tells of err on the template and the binding, once per failure:
// of what needs a person and of what the server refuses. Faults that may pass
// are logged.
func (r *Reconciler) tellFailure(s *state, err error) {
	reason := workv1alpha2.EventReasonSyncWorkFailed
	known := loop.As(err, reason)
	if known == nil || s.binding == nil {
		r.failures.Forget(s.key)
		return
	}
	if known.Class == loop.ClassWaiting || (known.Class == loop.ClassRetry && !bindings.IsRefused(err)) {
		return
	}
	if known.Reason != "" {
		reason = known.Reason
	}
	if r.failures.New(s.key, err.Error()) {
		r.events.Event(scheduler.TemplateRef(s.binding), corev1.EventTypeWarning, reason, err.Error())
		r.events.Event(s.binding, corev1.EventTypeWarning, reason, err.Error())
	}
}
