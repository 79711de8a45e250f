package commitstatus

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestWhatIsKeptIsNotedAtOnce: that a Kustomization is suspended counts from then on, however short ago its commit was reported.
func TestWhatIsKeptIsNotedAtOnce(t *testing.T) {
	h := newHandover(t)
	h.kustomization(func(ks *kustomizev1.Kustomization) {
		ks.Spec.Prune, ks.Labels = true, inventory.OwnerLabels(types.NamespacedName{Namespace: "shop", Name: "root"})
	})
	h.fetched(revisionA)
	h.applied(revisionA)
	h.fleet.is(rollup.Progressing, "not ready 1/2")
	keeps := func() string {
		t.Helper()
		if _, err := h.loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "web"}}); err != nil {
			t.Fatal(err)
		}
		var list gitopsv1alpha1.CommitStatusList
		if err := h.hub.List(t.Context(), &list); err != nil || len(list.Items) != 1 {
			t.Fatalf("%d commit statuses, %v", len(list.Items), err)
		}
		return list.Items[0].Annotations[gitopsv1alpha1.KeepsAnnotation]
	}
	if got := keeps(); got != "" {
		t.Errorf("one that prunes keeps what it applied: %q", got)
	}
	h.kustomization(func(ks *kustomizev1.Kustomization) { ks.Spec.Suspend = true })
	if got := keeps(); got != gitopsv1alpha1.KeepsSuspended {
		t.Errorf("one that is suspended: %q, want %q", got, gitopsv1alpha1.KeepsSuspended)
	}
}
