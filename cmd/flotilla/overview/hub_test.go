package overview

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// testHub has the member carry the mark of a future that the control plane has lost.
func testHub(t *testing.T, w *world) {
	if got := w.call(t.Context(), "resume hub"); got.Code != 0 || !strings.Contains(got.Out, "nothing to resume") {
		t.Errorf("resume of what does not wait: %s", got)
	}
	if got := w.call(t.Context(), "resume hub -o xml"); got.Code != 2 {
		t.Errorf("an output that there is not: %s", got)
	}
	system := &corev1.Namespace{}
	if err := w.east.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, system); err != nil {
		t.Fatal(err)
	}
	claim, err := hubclaim.Parse(system.Annotations[clusterv1alpha1.ClaimAnnotation])
	if err != nil || claim == nil {
		t.Fatalf("the claim: %v, %v", claim, err)
	}
	claim.Mark = &hubclaim.Mark{Run: 99, ID: "lost", Revision: 1 << 40}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{clusterv1alpha1.ClaimAnnotation: claim.Encode()}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.east.Patch(t.Context(), system, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	w.until(t, "status", "ControlPlane hub")
	if got := w.call(t.Context(), "status --check"); got.Code != 1 {
		t.Errorf("a status that is fine: %s", got)
	}

	w.commit(t, "Sell even more", map[string]string{"app/deep/web.yaml": strings.Replace(app, "replicas: 2", "replicas: 4", 1)})
	w.call(t.Context(), "reconcile source git fleet")
	const change = "would change Deployment shop/web in east"
	w.until(t, "resume hub --dry-run", change)
	if got := w.call(t.Context(), "resume hub --dry-run"); !strings.HasSuffix(got.Out, "\nflotilla resume hub goes on\n") {
		t.Errorf("a dry run does not say what goes on: %s", got)
	}
	replicas := func(ctx context.Context) (int32, error) {
		d := &appsv1.Deployment{}
		err := w.east.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, d)
		if err != nil || d.Spec.Replicas == nil {
			return 0, fmt.Errorf("read the Deployment: %w", err)
		}
		return *d.Spec.Replicas, nil
	}
	if got, err := replicas(t.Context()); got != 3 || err != nil {
		t.Errorf("the member was changed: %d replicas, %v", got, err)
	}
	var plan struct {
		Hold    *hubclaim.Hold
		Changes []map[string]string
		Resumed bool
	}
	got := w.call(t.Context(), "resume hub --dry-run -o json")
	if err := json.Unmarshal([]byte(got.Out), &plan); err != nil || plan.Hold == nil || len(plan.Changes) == 0 || plan.Resumed {
		t.Errorf("the plan for scripts: %v, %s", err, got)
	}

	got = w.call(t.Context(), "resume hub")
	if got.Code != 0 || !strings.Contains(got.Out, change) || strings.Contains(got.Out, "flotilla resume hub") || !strings.HasSuffix(got.Out, "the control plane goes on\n") {
		t.Errorf("resume: %s", got)
	}
	servertest.Eventually(t, "the change reaches the member", func(ctx context.Context) error {
		if got, err := replicas(ctx); got != 4 || err != nil {
			return fmt.Errorf("%d replicas, %w", got, err)
		}
		if got := w.call(ctx, "status"); strings.Contains(got.Out, "ControlPlane") {
			return fmt.Errorf("it waits: %s", got)
		}
		return nil
	})
	w.commit(t, "Sell more", map[string]string{"app/deep/web.yaml": strings.Replace(app, "replicas: 2", "replicas: 3", 1)})
	w.call(t.Context(), "reconcile source git fleet")
	if got := w.call(t.Context(), "reconcile ks web"); got.Code != 0 {
		t.Errorf("reconcile: %s", got)
	}
}
