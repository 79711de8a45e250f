package origins_test

import (
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// TestCommitted is about which commit a Kustomization is at.
func TestCommitted(t *testing.T) {
	const first, second = "v1@sha256:1", "v2@sha256:2"
	hash := strings.Repeat("9f", 20)
	says := func(revision, origin string) *meta.Artifact {
		out := &meta.Artifact{Revision: revision, Metadata: map[string]string{}}
		if origin != "" {
			out.Metadata["org.opencontainers.image.revision"] = origin
		}
		return out
	}
	history := meta.History{
		{Metadata: map[string]string{"revision": second, "originRevision": "main@sha1:2", "gitops.flotilla.io/changed": "v0@sha256:0", "gitops.flotilla.io/changed-origin": "main@sha1:0"}},
		{Metadata: map[string]string{"revision": first, "originRevision": "main@sha1:1"}},
	}
	for name, tc := range map[string]struct {
		kind     string
		artifact *meta.Artifact
		status   kustomizev1.KustomizationStatus
		revision string
		want     string
	}{
		"a repository's is its own":                 {kind: "GitRepository", artifact: says("main@sha1:1", "main@sha1:2"), revision: "main@sha1:1", want: "main@sha1:1"},
		"there is none":                             {},
		"the artifact says it":                      {artifact: says(first, "main@sha1:1"), revision: first, want: "main@sha1:1"},
		"it says nothing but the hash":              {artifact: says(first, hash), revision: first, want: "sha1:" + hash},
		"the hash of the longer kind":               {artifact: says(first, hash+strings.Repeat("0", 24)), revision: first, want: "sha256:" + hash + strings.Repeat("0", 24)},
		"it says nothing":                           {artifact: says(first, ""), status: kustomizev1.KustomizationStatus{History: history}, revision: first},
		"the source is further, and it was applied": {artifact: says(second, "main@sha1:2"), status: kustomizev1.KustomizationStatus{LastAppliedRevision: first, LastAppliedOriginRevision: "main@sha1:1"}, revision: first, want: "main@sha1:1"},
		"it is in the history":                      {status: kustomizev1.KustomizationStatus{History: history}, revision: first, want: "main@sha1:1"},
		"it is what changed something last":         {status: kustomizev1.KustomizationStatus{History: history}, revision: "v0@sha256:0", want: "main@sha1:0"},
		"it is not known any more":                  {artifact: says(second, "main@sha1:2"), status: kustomizev1.KustomizationStatus{History: history}, revision: "v3@sha256:3"},
	} {
		t.Run(name, func(t *testing.T) {
			ks := &kustomizev1.Kustomization{Status: tc.status}
			if ks.Spec.SourceRef.Kind = tc.kind; tc.kind == "" {
				ks.Spec.SourceRef.Kind = "OCIRepository"
			}
			if got := origins.Committed(ks, tc.artifact, tc.revision); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestPacked is about what the artifact of a source was made from.
func TestPacked(t *testing.T) {
	artifact := &meta.Artifact{Revision: "x@sha1:1", Metadata: map[string]string{"org.opencontainers.image.revision": "main@sha1:2"}}
	for name, tc := range map[string]struct {
		of   origins.Object
		want string
	}{
		"a repository": {&sourcev1.GitRepository{Status: sourcev1.GitRepositoryStatus{Artifact: artifact}}, "x@sha1:1"},
		"an artifact":  {&sourcev1.OCIRepository{Status: sourcev1.OCIRepositoryStatus{Artifact: artifact}}, "main@sha1:2"},
		"none yet":     {&sourcev1.OCIRepository{}, ""},
	} {
		if got := origins.Packed(tc.of); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
