package drain

import (
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/staleremoval"
)

// Remains has a row of what was moved off the cluster say that it has not left, as this Work of it is there still, and
// what keeps that.
func (r *Row) Remains(work *workv1alpha1.Work) {
	if r.State != Left {
		return
	}
	r.State, r.Why = Leaves, "the old copy goes"
	blocked := apimeta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkDeletionBlocked)
	if blocked == nil {
		return
	}
	switch r.Why = strings.TrimSuffix(staleremoval.Shown(blocked.Message), "."); blocked.Reason {
	case workv1alpha1.WorkHoldsOwnReason:
		if why, command, cut := strings.Cut(r.Why, ". See what that waits for: "); cut {
			r.Why, r.Next = why, "see what that waits for: "+command
		}
	case workv1alpha1.WorkHoldsOthersReason:
		r.Why, _, _ = strings.Cut(r.Why, ". Annotate this Work")
		r.State, r.Next = Stays, fmt.Sprintf("see that nobody misses it, then: flotilla kubectl annotate work -n %s %s %s=true", work.Namespace, work.Name, workv1alpha2.AllowCascadeAnnotation)
	case workv1alpha1.WorkLastCopyReason:
		r.Next = r.explain() // what is to be mended is where it goes
	default:
		r.Next = "put right in the cluster what keeps it"
	}
}
