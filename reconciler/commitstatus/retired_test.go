package commitstatus

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestWhatARefusedCommitRetires: that a folder is gone follows from the refusal of the one that is to remove who applied it.
func TestWhatARefusedCommitRetires(t *testing.T) {
	is := func(name, parent, reason string) kustomizev1.Kustomization {
		ks := kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}}
		if parent != "" {
			ks.Labels = inventory.OwnerLabels(types.NamespacedName{Namespace: "flux-system", Name: parent})
		}
		ks.Status.LastAttemptedRevision = revisionA
		ks.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionFalse, Reason: reason}}
		return ks
	}
	passes := is("root", "", meta.ReconciliationSucceededReason)
	passes.Status.Conditions[0].Status = metav1.ConditionTrue
	cases := map[string]struct {
		child, parent kustomizev1.Kustomization
		want          string
	}{
		"its parent may not remove it":            {is("a", "root", inventory.ReasonPathNotFound), is("root", "", inventory.ReasonPruneBlocked), "2 failed; root: PruneBlocked"},
		"its parent cannot be built":              {is("a", "root", inventory.ReasonPathNotFound), is("root", "", meta.BuildFailedReason), "2 failed; root: BuildFailed"},
		"its parent keeps it":                     {is("a", "root", inventory.ReasonPathNotFound), passes, "1 failed, 1 ready; a: PathNotFound"},
		"it has no parent, and a path of its own": {is("a", "", inventory.ReasonPathNotFound), is("root", "", meta.HealthCheckFailedReason), "2 failed; a: PathNotFound"},
		"it has another fault":                    {is("a", "root", inventory.ReasonDeletedAgain+"X"), is("root", "", meta.BuildFailedReason), "2 failed; a: DeletedAgainX"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &sources{revision: revisionA, commit: commitOf(revisionA), applied: []kustomizev1.Kustomization{tc.child, tc.parent}, ofEach: map[string]*gitopsv1alpha1.CommitStatus{}}
			to := recipient{}
			for i := range s.applied {
				ks := &s.applied[i]
				state := gitopsv1alpha1.CommitError
				if ks.Status.Conditions[0].Status == metav1.ConditionTrue {
					state = gitopsv1alpha1.CommitSuccess
				}
				to.of = append(to.of, source{ks, "forge"})
				s.ofEach[statusName(ks.Name, "forge")] = &gitopsv1alpha1.CommitStatus{Spec: gitopsv1alpha1.CommitStatusSpec{
					Commit: s.commit, State: state, Description: ks.Status.Conditions[0].Reason,
				}}
			}
			if diff := cmp.Diff(tc.want, rollup.Source(sharesOf(s.shares(to))).Description); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
