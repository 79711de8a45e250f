package lineage_test

import (
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/lineage"
	"github.com/flotilla-io/flotilla/policies/inclusion"
)

// TestFromSubmodule: a file is of the submodule that the source had at the revision that is applied.
func TestFromSubmodule(t *testing.T) {
	const revision = "main@sha1:9f2c"
	metadata := map[string]string{}
	inclusion.RecordSubmodules(metadata, []inclusion.Submodule{{Path: "vendor/base", URL: "https://git.test/base", Commit: "0b7a"}})
	at := func(revision string) *sourcev1.GitRepository {
		return &sourcev1.GitRepository{Status: sourcev1.GitRepositoryStatus{Artifact: &meta.Artifact{Revision: revision, Metadata: metadata}}}
	}
	for name, tc := range map[string]struct {
		source *sourcev1.GitRepository
		file   string
		want   *lineage.Submodule
	}{
		"of a submodule":             {at(revision), "vendor/base/web.yaml", &lineage.Submodule{Directory: "vendor/base", URL: "https://git.test/base", Commit: "0b7a", Path: "web.yaml"}},
		"of the repository itself":   {at(revision), "web.yaml", nil},
		"the source has moved on":    {at("main@sha1:aaaa"), "vendor/base/web.yaml", nil},
		"the source has no artifact": {&sourcev1.GitRepository{}, "vendor/base/web.yaml", nil},
		"the file is not known":      {at(revision), "", nil},
	} {
		f := &lineage.File{Path: tc.file}
		f.FromSubmodule(tc.source, revision)
		if diff := cmp.Diff(tc.want, f.Submodule); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
