package overview

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStanding: the commit is the one whose objects are on the control plane, whatever
// became of them.
func TestStanding(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, message string
		want            string
	}{
		"its health is waited for":  {"Progressing", "Running health checks for revision main@sha1:2 with a timeout of 1m", "main@sha1:2"},
		"its health did not come":   {"HealthCheckFailed", "health check failed", "main@sha1:2"},
		"a cluster of it is silent": {"ClusterSilent", "Applied revision main@sha1:2; health is not known: Deployment/shop/web", "main@sha1:2"},
		"it could not be built":     {"BuildFailed", "no such file", "main@sha1:1"},
		"it is being built":         {"Progressing", "Building manifests for revision main@sha1:2", "main@sha1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			ks := &kustomizev1.Kustomization{}
			ks.Status.LastAppliedRevision, ks.Status.LastAttemptedRevision = "main@sha1:1", "main@sha1:2"
			ks.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionUnknown, Reason: tc.reason, Message: tc.message}}
			if got := standing(ks); got != tc.want {
				t.Errorf("%s stands, want %s", got, tc.want)
			}
		})
	}
}
