package binding

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// soon is the pause before the next try if somebody wrote a Work while it was renamed.
const soon = 50 * time.Millisecond

// rename replaces the Work under its former name, if that still exists, by the one
// under its planned name. It returns the pause before the next try;
// zero for none.
func (p writer) rename(ctx context.Context, s *state, planned plan.WorkPlan) (time.Duration, error) {
	former := formerly(s, planned)
	if former == nil {
		return 0, nil
	}
	work, found, err := p.find(ctx, client.ObjectKeyFromObject(planned.Work))
	if err != nil || !found || anothers(s.key, work) {
		return 0, err
	}
	err = p.succeed(ctx, work, former)
	if bindings.IsStale(err) {
		return soon, nil
	}
	return 0, err
}

// formerly returns the Work of the binding in the cluster of a plan under its former
// name; nil if there is none.
func formerly(s *state, planned plan.WorkPlan) *workv1alpha1.Work {
	ref := &s.binding.BindingSpec().Resource
	for _, w := range worksIn(s.works, planned.Cluster) {
		if plan.Succeeds(planned.Work, w) && w.Name == workv1alpha2.FormerWorkName(ref.Kind, ref.Name, ref.Namespace) {
			return w
		}
	}
	return nil
}
