package binding

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/interpreters"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// named is how many clusters a message names; it counts the others.
const named = 5

// fault is what went wrong for one cluster, or, without a name, for all.
type fault struct {
	cluster string
	err     error
}

// planError returns what keeps a cluster from getting its Work. An override
// that does not fit needs a person; a rule about the kind that fails may work
// later; a cluster that is not known, or not any more, is the scheduler's
// business.
func planError(planned plan.WorkPlan) error {
	if errors.Is(planned.Err, plan.ErrUnknownCluster) {
		return nil
	}
	var wrong *override.Error
	var beyond *plan.BeyondQuotaError
	if errors.As(planned.Err, &wrong) || errors.As(planned.Err, &beyond) {
		return loop.Stalled(policyv1alpha1.EventReasonApplyOverridePolicyFailed, planned.Err)
	}
	if interpreters.Failed(planned.Err) {
		return loop.Waiting(workv1alpha2.EventReasonSyncWorkFailed, interpreters.RetryAfter(planned.Err), planned.Err)
	}
	return loop.Stalled(workv1alpha2.EventReasonSyncWorkFailed, planned.Err)
}

// joined puts faults together so that the one that must be tried again soonest
// decides what happens next. Clusters with the same fault are reported together.
// The text does not depend on the order of the faults.
func joined(faults []fault) error {
	clusters := map[string][]string{}
	var causes []error
	for _, f := range faults {
		text := f.err.Error()
		if _, known := clusters[text]; !known {
			causes = append(causes, f.err)
			clusters[text] = nil
		}
		if f.cluster != "" {
			clusters[text] = append(clusters[text], f.cluster)
		}
	}
	class := func(err error) loop.Class { return loop.As(err, "").Class }
	slices.SortFunc(causes, func(a, b error) int {
		return cmp.Or(cmp.Compare(class(a), class(b)), cmp.Compare(a.Error(), b.Error()))
	})
	for i, err := range causes {
		where := clusters[err.Error()]
		if class(err) == loop.ClassRetry {
			err = loop.Retry(workv1alpha2.EventReasonSyncWorkFailed, err)
		}
		if len(where) > 0 {
			err = fmt.Errorf("%s: %w", listed(where), err)
		}
		causes[i] = err
	}
	return errors.Join(causes...)
}

// listed names some of the clusters.
func listed(clusters []string) string {
	slices.Sort(clusters)
	switch more := len(clusters) - named; {
	case len(clusters) == 1:
		return "cluster " + clusters[0]
	case more > 1:
		return fmt.Sprintf("clusters %s and %d more", strings.Join(clusters[:named], ", "), more)
	default:
		return "clusters " + strings.Join(clusters, ", ")
	}
}

// reported is what an Event was about.
type reported struct {
	binding client.ObjectKey
	reason  string
}

// reportFailures reports faults on the template and the binding, once per reason
// and failure: of what needs a person and of what the server refuses. Faults
// that may pass are logged. A failure is over once a pass came to its end
// without a fault of its reason, or the binding is gone.
func (r *Reconciler) reportFailures(s *state, err error) {
	faults := s.failed
	if len(faults) == 0 && err != nil {
		faults = []fault{{err: err}}
	}
	for _, reason := range []string{policyv1alpha1.EventReasonApplyOverridePolicyFailed, workv1alpha2.EventReasonSyncWorkFailed} {
		var fresh []fault
		some := false
		for _, f := range faults {
			if reasonOf(f.err) == reason {
				some = true
				if needsPerson(f.err) {
					fresh = append(fresh, f)
				}
			}
		}
		about := reported{s.key, reason}
		switch err := joined(fresh); {
		case s.binding == nil, s.complete && !some:
			r.failures.Forget(about)
		case err != nil && r.failures.Record(about, err.Error()):
			r.events.Event(bindings.TemplateRef(s.binding), corev1.EventTypeWarning, reason, err.Error())
			r.events.Event(s.binding, corev1.EventTypeWarning, reason, err.Error())
		}
	}
}

func reasonOf(err error) string {
	return cmp.Or(loop.As(err, "").Reason, workv1alpha2.EventReasonSyncWorkFailed)
}

// needsPerson reports whether err is unlikely to pass by itself.
func needsPerson(err error) bool {
	class := loop.As(err, "").Class
	return class == loop.ClassStalled || interpreters.Failed(err) || class == loop.ClassRetry && bindings.IsRefused(err)
}
