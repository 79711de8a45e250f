package alerting

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
)

// TestWhatAnEventSaysOfItsRevision: of an artifact it is told of which commit it was packed, also where it is not applied wholly.
func TestWhatAnEventSaysOfItsRevision(t *testing.T) {
	const first, second = "v1@sha256:1", "v2@sha256:2"
	history := meta.History{{Metadata: map[string]string{"revision": second, "originRevision": "main@sha1:2"}}}
	for name, tc := range map[string]struct {
		kind   string
		status kustomizev1.KustomizationStatus
		want   map[string]string
	}{
		"of a repository": {"GitRepository", kustomizev1.KustomizationStatus{LastAttemptedRevision: "main@sha1:1", LastAppliedRevision: "main@sha1:1"}, map[string]string{"revision": "main@sha1:1"}},
		"an artifact that is applied": {"OCIRepository", kustomizev1.KustomizationStatus{LastAttemptedRevision: first, LastAppliedRevision: first, LastAppliedOriginRevision: "main@sha1:1"},
			map[string]string{"revision": first, "originRevision": "main@sha1:1"}},
		"one whose health is bad": {"OCIRepository", kustomizev1.KustomizationStatus{LastAttemptedRevision: second, LastAppliedRevision: first, LastAppliedOriginRevision: "main@sha1:1", History: history},
			map[string]string{"revision": second, "originRevision": "main@sha1:2"}},
		"one of which nothing is known": {"OCIRepository", kustomizev1.KustomizationStatus{LastAttemptedRevision: second, LastAppliedRevision: first, LastAppliedOriginRevision: "main@sha1:1"},
			map[string]string{"revision": second}},
	} {
		t.Run(name, func(t *testing.T) {
			ks := &kustomizev1.Kustomization{Status: tc.status}
			ks.Spec.SourceRef.Kind = tc.kind
			of, _, _ := subject(ks)
			if diff := cmp.Diff(tc.want, of().Metadata); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
