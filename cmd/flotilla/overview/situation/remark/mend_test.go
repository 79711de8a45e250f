package remark_test

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/remark"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestWhatMendsARevision: a path stands in the Kustomization, which another one may apply, and all else in its files.
func TestWhatMendsARevision(t *testing.T) {
	alone := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	applied := alone.DeepCopy()
	applied.Labels = inventory.OwnerLabels(client.ObjectKey{Namespace: "team", Name: "root"})
	for name, tc := range map[string]struct {
		ks           *kustomizev1.Kustomization
		reason, want string
	}{
		"its files":                   {alone, "BuildFailed", "correct the files and commit"},
		"its path":                    {alone, "PathNotFound", "correct spec.path: flotilla edit kustomization web -n shop, or commit that folder"},
		"its path, which is in files": {applied, "PathNotFound", "correct spec.path where Kustomization team/root has it, or add that folder, and commit"},
	} {
		if got := remark.Mend(tc.ks, tc.reason); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
