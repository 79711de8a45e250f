package template

import (
	"maps"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/scheduler"
)

// overQuota says whether err is a quota's refusal of the placement in s. If so,
// s desires the binding without that placement from here on: it stays where it
// was, says why, and the scheduler tries again.
func (p writer) overQuota(s *state, err error) bool {
	reason, message, refused := scheduler.RefusalOf(err)
	if !refused || reason != workv1alpha2.BindingReasonQuotaExceeded || s.decision == nil {
		return false
	}
	p.withdraw(s.desired)
	kept, _ := placement.Refused(s.before(), reason, message, s.decision.Record.At.Time)
	kept.Put(s.desired)
	if kept.AppliedPlacement == "" {
		annotations := maps.Clone(s.desired.GetAnnotations())
		delete(annotations, policyv1alpha1.PolicyPlacementAnnotation)
		s.desired.SetAnnotations(annotations)
	}
	s.decision = &kept
	return true
}
