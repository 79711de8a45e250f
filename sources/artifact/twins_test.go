package artifact_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/artifact"
)

// TestTwins is about names that are one file on the disks of many people, and two here.
func TestTwins(t *testing.T) {
	const same = " differ only in case, or in how their letters are encoded, and are the same on many disks"
	for name, tc := range map[string]struct {
		names []string
		want  string // the pair; empty for names that go together
	}{
		"nothing":                                {},
		"names that differ otherwise":            {names: []string{"a.yaml", "b.yaml", "a/a.yaml", "á.yaml", "deploy/a.yaml", "deploy/b.yaml"}},
		"a file like a folder elsewhere":         {names: []string{"app/web", "web/app"}},
		"files that differ in case":              {names: []string{"Readme.md", "README.md"}, want: `"README.md" and "Readme.md"`},
		"folders that differ in case":            {names: []string{"App/a.yaml", "app/b.yaml"}, want: `"App" and "app"`},
		"a file and a folder":                    {names: []string{"APP", "app/b.yaml"}, want: `"APP" and "app"`},
		"composed and decomposed":                {names: []string{"caf\u00e9.yaml", "cafe\u0301.yaml"}, want: `"cafe\u0301.yaml" and "caf\u00e9.yaml"`},
		"both":                                   {names: []string{"CAF\u00c9.yaml", "cafe\u0301.yaml"}, want: `"CAF\u00c9.yaml" and "cafe\u0301.yaml"`},
		"letters that fold to several":           {names: []string{"straße", "STRASSE"}, want: `"STRASSE" and "stra\u00dfe"`},
		"the sign of Kelvin":                     {names: []string{"\u212a8s.yaml", "k8s.yaml"}, want: `"k8s.yaml" and "\u212a8s.yaml"`},
		"what has no case, in an order of marks": {names: []string{"a\u0323\u0307", "a\u0307\u0323"}, want: `"a\u0307\u0323" and "a\u0323\u0307"`},
	} {
		t.Run(name, func(t *testing.T) {
			files, tree := artifact.Files{}, fstest.MapFS{}
			for _, n := range tc.names {
				files[n] = artifact.File{Data: []byte(n)}
				tree[n] = &fstest.MapFile{Data: []byte(n)}
			}
			_, collected := artifact.Collect(t.Context(), tree, artifact.Selection{}, artifact.Limits{})
			for way, got := range map[string]struct {
				err  error
				next string
			}{
				"as files":  {files.CheckTwins(), ": rename one"},
				"as names":  {artifact.CheckNames(slices.Sorted(slices.Values(tc.names))), ""},
				"as a tree": {collected, ": rename one, or exclude it with spec.ignore or .sourceignore"},
			} {
				want := ""
				if tc.want != "" {
					want = "malformed archive: the names " + tc.want + same + got.next
				}
				text := ""
				if got.err != nil {
					text = got.err.Error()
				}
				if diff := cmp.Diff(want, text); diff != "" || want != "" && !errors.Is(got.err, artifact.ErrMalformed) {
					t.Errorf("%s (-want +got):\n%s", way, diff)
				}
			}
		})
	}
}

// TestTwinsThatAreExcluded: what does not belong to the artifact is of no account, and links are none of its files.
func TestTwinsThatAreExcluded(t *testing.T) {
	tree := fstest.MapFS{sourceignore.IgnoreFile: {Data: []byte("README.md\n")}, "README.md": {}, "Readme.md": {}}
	if _, err := artifact.Collect(t.Context(), tree, artifact.Selection{}, artifact.Limits{}); err != nil {
		t.Error(err)
	}
	files := artifact.Files{"a": {}, "A": {Link: true}}
	if err := files.CheckTwins(); err != nil {
		t.Error(err)
	}
}

// TestTwinsInManyFiles: as many as an artifact may have are looked at in no time.
func TestTwinsInManyFiles(t *testing.T) {
	names := make([]string, 10_000)
	for n := range names {
		names[n] = fmt.Sprintf("%s%05d.yaml", strings.Repeat("é/", n%50), n)
	}
	if err := artifact.CheckNames(slices.Sorted(slices.Values(names))); err != nil {
		t.Error(err)
	}
}
