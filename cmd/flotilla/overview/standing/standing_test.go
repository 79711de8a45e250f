package standing_test

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/standing"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestRevision: the revision is the one whose objects are on the control plane, whatever became of them.
func TestRevision(t *testing.T) {
	const recorded = "sha256:b sha256:a main@sha1:2 7"
	for name, tc := range map[string]struct {
		reason, message, tried string
		record                 string
		want                   string
	}{
		"its health is waited for":                           {"Progressing", "Running health checks for revision main@sha1:2 with a timeout of 1m", "main@sha1:2", "", "main@sha1:2"},
		"its health did not come":                            {"HealthCheckFailed", "health check failed", "main@sha1:2", "", "main@sha1:2"},
		"a cluster of it is silent":                          {"ClusterSilent", "Applied revision main@sha1:2; health is not known: Deployment/shop/web", "main@sha1:2", "", "main@sha1:2"},
		"it could not be built":                              {"BuildFailed", "no such file", "main@sha1:2", "", "main@sha1:1"},
		"it is being built":                                  {"Progressing", "Building manifests for revision main@sha1:2", "main@sha1:2", "", "main@sha1:1"},
		"its health did not come, and the next is not built": {"BuildFailed", "no such file", "main@sha1:3", recorded, "main@sha1:2"},
		"its health did not come, and the next is refused":   {"UnknownCluster", "clusterNames names wst", "main@sha1:3", recorded, "main@sha1:2"},
		"the next is written in part":                        {"ReconciliationFailed", "webhook refused", "main@sha1:3", "- - - 7", "main@sha1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			ks := &kustomizev1.Kustomization{}
			ks.Status.LastAppliedRevision, ks.Status.LastAttemptedRevision = "main@sha1:1", tc.tried
			ks.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionUnknown, Reason: tc.reason, Message: tc.message}}
			if tc.record != "" {
				ks.Status.History = meta.History{{Metadata: map[string]string{"gitops.flotilla.io/applied": tc.record}}}
			}
			if got := standing.Revision(ks); got != tc.want {
				t.Errorf("%s stands, want %s", got, tc.want)
			}
		})
	}
}

// TestWhichRevisionFails: what is reported of a Kustomization is about the revision that was tried last,
// which is not always the one that stands beside it.
func TestWhichRevisionFails(t *testing.T) {
	ks := &kustomizev1.Kustomization{}
	ks.Status.LastAppliedRevision, ks.Status.LastAttemptedRevision = "main@sha1:1111111111", "main@sha1:2222222222"
	for message, want := range map[string]string{
		"health check failed":                            "revision main@sha1:22222222: health check failed",
		"revision main@sha1:2222222222 would remove all": "revision main@sha1:2222222222 would remove all",
	} {
		if got := standing.Attempted(ks, message); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	ks.Status.LastAppliedRevision = ks.Status.LastAttemptedRevision
	if got := standing.Attempted(ks, "fine"); got != "fine" {
		t.Errorf("of the one that stands it says %q", got)
	}
}

// TestWhereObjectsAre: objects outside of the fleet are told, as nothing else shows them.
func TestWhereObjectsAre(t *testing.T) {
	entries := func(n int) *kustomizev1.ResourceInventory {
		return &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{{ID: "shop_a__ConfigMap", Version: "v1"}, {ID: "shop_b__ConfigMap", Version: "v1"}}[:n]}
	}
	prod := inventory.Place{Server: "https://prod", Secret: "prod"}
	for name, tc := range map[string]struct {
		in   inventory.Place
		has  int
		want string
	}{
		"on the control plane":         {has: 2},
		"one in a cluster outside":     {in: prod, has: 1, want: "1 object in the cluster of the Secret prod, outside of the fleet"},
		"several in a cluster outside": {in: prod, has: 2, want: "2 objects in the cluster of the Secret prod, outside of the fleet"},
	} {
		t.Run(name, func(t *testing.T) {
			ks := &kustomizev1.Kustomization{Status: kustomizev1.KustomizationStatus{History: meta.History{{Digest: "1"}}, Inventory: entries(tc.has)}}
			inventory.RecordPlace(&ks.Status, tc.in)
			if got := standing.Elsewhere(ks); got != tc.want {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
		})
	}
}
