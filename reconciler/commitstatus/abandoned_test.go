package commitstatus

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// TestACommitThatWasAbandonedHalfwayIsNoSuccess: a Kustomization that has written a part of a commit, and follows another source by now,
// is no longer of that source, and clusters do not have the commit all the same.
func TestACommitThatWasAbandonedHalfwayIsNoSuccess(t *testing.T) {
	const held = "1 failed, 1 unchanged; half: half written, and it follows GitRepository shop/split by now: suspend it to give that up"
	for name, tc := range map[string]struct {
		revision string
		want     []string
	}{
		"a part of this commit":    {revisionB, []string{"failure " + held}},
		"a part of an earlier one": {revisionA, []string{"success 1 unchanged"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandover(t)
			h.unchanged(revisionA, revisionB)
			half := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "half"}}
			half.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "split"}
			apimeta.SetStatusCondition(&half.Status.Conditions, metav1.Condition{Type: revisiongate.Condition, Status: metav1.ConditionTrue, Reason: revisiongate.ReasonWritten, Message: revisiongate.Announcement(tc.revision, "sha256:a", nil)})
			if err := h.hub.Create(t.Context(), half); err != nil {
				t.Fatal(err)
			}
			of := keyOfSource("shop", inventory.GitRepository(client.ObjectKey{Namespace: "shop", Name: "fleet"}))
			if err := h.hub.Create(t.Context(), &gitopsv1alpha1.CommitStatus{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: statusName("web", "forge")}, Spec: gitopsv1alpha1.CommitStatusSpec{
				KustomizationRef: &gitopsv1alpha1.LocalReference{Name: "web"}, ProviderRef: gitopsv1alpha1.LocalReference{Name: "forge"}, State: gitopsv1alpha1.CommitSuccess, Description: "1/1 clusters ready",
			}}); err != nil {
				t.Fatal(err)
			}
			if _, err := NewSources(h.hub, silent{}, Options{Clock: h.clock}).Reconcile(t.Context(), reconcile.Request{NamespacedName: of}); err != nil {
				t.Fatal(err)
			}
			var list gitopsv1alpha1.CommitStatusList
			if err := h.hub.List(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, cs := range list.Items {
				if cs.Spec.SourceRef != nil {
					got = append(got, string(cs.Spec.State)+" "+cs.Spec.Description)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("told of the source (-want +got):\n%s", diff)
			}
		})
	}
}
