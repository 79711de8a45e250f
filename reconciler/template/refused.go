package template

import (
	"context"
	"fmt"
	"maps"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// quotaPause is the pause before the next try of a template whose placement a quota
// refuses. An edit of the quota starts one at once.
const quotaPause = 30 * time.Second

// overQuota reports whether err is a quota's refusal of the placement in s. If so, it changes the
// desired binding in s: the placement stays as it was, the record says why, and the scheduler tries
// again, and evicts it from clusters that leave.
func (p writer) overQuota(s *state, err error) bool {
	reason, message, refused := bindings.RefusalOf(err)
	if !refused || reason != workv1alpha2.BindingReasonQuotaExceeded || s.decision == nil {
		return false
	}
	p.withdraw(s.desired)
	kept, _ := placement.Refused(s.before(), *s.decision, placement.Snapshot{}, reason, message, s.decision.Record.At.Time)
	kept.Put(s.desired)
	if kept.AppliedPlacement == "" {
		annotations := maps.Clone(s.desired.GetAnnotations())
		delete(annotations, policyv1alpha1.PolicyPlacementAnnotation)
		s.desired.SetAnnotations(annotations)
	}
	s.decision = &kept
	return true
}

// reportRefused records on the unchanged binding that a quota refuses the latest version of its
// template: else a change that is refused would look like one that is done.
func (p writer) reportRefused(ctx context.Context, s *state, err error) error {
	reason, message, refused := bindings.RefusalOf(err)
	if !refused || reason != workv1alpha2.BindingReasonQuotaExceeded || s.binding == nil {
		return nil
	}
	stays, changed := placement.Refused(s.binding, placement.Decision{}, placement.Snapshot{}, reason, "the latest version of its template is held back: "+message, p.clock.Now())
	if !changed {
		return nil
	}
	desired := s.binding.DeepCopyObject().(workv1alpha2.Binding)
	stays.Put(desired)
	patch, some, err := bindings.Patch(s.binding, desired)
	if err != nil || !some {
		return err
	}
	switch err := p.hub.Patch(ctx, desired, patch); {
	case err == nil:
		p.written.Wrote(desired)
	case !bindings.IsStale(err):
		return fmt.Errorf("note what a quota holds back: %w", err)
	}
	return nil
}

// quotaEdited returns the templates of a quota's namespace that have a binding, as the quota may
// have refused some of them. For the others a pass costs no write.
func (r *Reconciler) quotaEdited(ctx context.Context, quota *policyv1alpha1.FederatedResourceQuota) []templatestore.Key {
	var out []templatestore.Key
	err := bindings.Each(ctx, r.hub, func(b workv1alpha2.Binding) {
		out = append(out, bindings.TemplateOf(b))
	}, client.InNamespace(quota.Namespace))
	if err != nil {
		log.FromContext(ctx).Error(err, "find what a quota holds back")
	}
	return out
}
