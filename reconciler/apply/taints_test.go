package apply_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// TestTaintsThatLeaveGit: taints that left Git are removed, and no others, whoever wrote the list of taints last.
func TestTaintsThatLeaveGit(t *testing.T) {
	w := newQuietWorld(t)
	const manifest = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: east}\nspec: {syncMode: Push%s}\n"
	commit := func(taints string) {
		t.Helper()
		w.ready("web", w.commit(map[string]string{"app/east.yaml": fmt.Sprintf(manifest, taints), "app/x.yaml": named("a", "b")}))
	}
	east := &clusterv1alpha1.Cluster{}
	are := func(want ...string) {
		t.Helper()
		if err := w.Hub.Get(t.Context(), client.ObjectKey{Name: "east"}, east); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, taint := range east.Spec.Taints {
			got = append(got, taint.Key)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("taints (-want +got):\n%s", diff)
		}
	}
	const notReady = "cluster.karmada.io/not-ready"
	set := func(taints ...corev1.Taint) { // as the control plane does
		t.Helper()
		east.Spec.Taints = taints
		if err := w.Hub.Update(t.Context(), east, client.FieldOwner("flotillad")); err != nil {
			t.Fatal(err)
		}
	}
	w.kustomization("web")
	commit(", taints: [{key: dedicated, value: x, effect: NoSchedule}]")
	are("dedicated")
	set(append(east.Spec.Taints, corev1.Taint{Key: notReady, Effect: corev1.TaintEffectNoSchedule})...)
	commit("")
	are(notReady)
	before := w.QuietRevision(t)
	w.annotate("web", "reconcile.fluxcd.io/requestedAt", "now")
	w.until("it has looked again", func() (bool, string) { return w.get("web").Status.LastHandledReconcileAt == "now", "" })
	if after := w.QuietRevision(t); after != before+2 {
		t.Errorf("%d writes for a look, want two: the request, and the answer: %v", after-before, w.Written(t, before))
	}
	are(notReady)
	set()
	commit(", taints: []")
	are()
	set(corev1.Taint{Key: "by-hand", Effect: corev1.TaintEffectNoSchedule})
	commit("")
	are("by-hand")
}
