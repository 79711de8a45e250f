package commitstatus

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestACommitOfAnotherSourceIsNotLeftPending: where a Kustomization follows another source, what is told of the commits of the former one
// ends, which closes the one that is pending, and begins anew: in one object the former commit would stay pending for ever.
func TestACommitOfAnotherSourceIsNotLeftPending(t *testing.T) {
	for name, tc := range map[string]struct {
		posted gitopsv1alpha1.CommitState
		ends   bool
	}{
		"the former commit is pending":    {posted: gitopsv1alpha1.CommitPending, ends: true},
		"the former commit was a success": {posted: gitopsv1alpha1.CommitSuccess},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandover(t)
			told := func() *gitopsv1alpha1.CommitStatus {
				t.Helper()
				if _, err := h.loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "web"}}); err != nil {
					t.Fatal(err)
				}
				var list gitopsv1alpha1.CommitStatusList
				if err := h.hub.List(t.Context(), &list); err != nil || len(list.Items) != 1 {
					t.Fatalf("%d commit statuses, %v", len(list.Items), err)
				}
				return &list.Items[0]
			}
			h.fetched(revisionA)
			h.applied(revisionA)
			h.fleet.is(rollup.Progressing, "not ready 1/2")
			cs := told()
			cs.Status.Posted = &gitopsv1alpha1.PostedStatus{Commit: cs.Spec.Commit, State: tc.posted}
			if err := h.hub.Update(t.Context(), cs); err != nil {
				t.Fatal(err)
			}
			h.loop = New(h.hub, &h.fleet, silent{}, Options{Clock: h.clock})
			if err := h.hub.Create(t.Context(), &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "split"}, Spec: sourcev1.GitRepositorySpec{URL: "https://git.example.com/acme/split"}}); err != nil {
				t.Fatal(err)
			}
			h.kustomization(func(ks *kustomizev1.Kustomization) { ks.Spec.SourceRef.Name = "split" })
			if told().DeletionTimestamp != nil {
				t.Error("it ends before there is a commit of the other source")
			}
			h.applied(revisionB)
			if got := told(); (got.DeletionTimestamp != nil) != tc.ends {
				t.Errorf("ends: %v, want %v; told of %s in %s", !tc.ends, tc.ends, got.Spec.Commit, got.Spec.Repository)
			}
		})
	}
}
