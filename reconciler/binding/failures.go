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

// named is how many clusters a message names; others are counted.
const named = 5

// fault is the error for one cluster, or, without a name, for all.
type fault struct {
	cluster string
	err     error
}

// planError returns why a cluster cannot get its Work, with its class. An override
// that does not fit needs a person; an interpreter rule that fails may work
// later. A cluster that does not exist, or does not any more, is no error here, as the scheduler
// deals with it.
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

// joined joins faults so that the class of the one that must be tried again soonest
// counts. Clusters with the same error are reported together.
// The text does not depend on the order of the faults, so that it counts as the same message.
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

// reported identifies the failures that are reported once.
type reported struct {
	binding client.ObjectKey
	reason  string
}

// reportFailures emits events about faults on the template and the binding, once per reason
// and failure: about those that need a person and those that the server refuses. Faults
// that may pass are only logged. A failure is over once a complete pass
// has no fault with its reason, or the binding is gone.
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

// needsPerson reports whether err is unlikely to pass by itself, or may be so for long.
func needsPerson(err error) bool {
	class := loop.As(err, "").Class
	return class == loop.ClassStalled || awaitsPerson(err) || interpreters.Failed(err) || class == loop.ClassRetry && bindings.IsRefused(err)
}
