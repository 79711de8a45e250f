package kustomizations_test

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"

	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// TestShown: of what an artifact was packed is told whatever became of its revision, and stays in no status.
func TestShown(t *testing.T) {
	const first, second = "v1@sha256:1", "v2@sha256:2"
	ks := &kustomizev1.Kustomization{}
	ks.Spec.SourceRef.Kind = "OCIRepository"
	ks.Status.LastAttemptedRevision, ks.Status.LastAppliedRevision, ks.Status.LastAppliedOriginRevision = second, first, "main@sha1:1"
	ks.Status.History = meta.History{{Metadata: map[string]string{"revision": first, "originRevision": "main@sha1:1"}}}
	for name, tc := range map[string]struct{ revision, origin, want string }{
		"it could not be built":     {second, "main@sha1:2", "main@sha1:2"},
		"its artifact says nothing": {second, "", ""},
		"it is applied":             {first, "main@sha1:1", "main@sha1:1"},
	} {
		if got := origins.Committed(kustomizations.ForEvents(ks, tc.revision, tc.origin), nil, tc.revision); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if len(ks.Status.History) != 1 {
		t.Errorf("the history is %v", ks.Status.History)
	}
}
