package inclusion_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/inclusion"
)

// TestOfSubmodule is about which files of an artifact are of a submodule.
func TestOfSubmodule(t *testing.T) {
	lib := inclusion.Submodule{Path: "vendor/lib", URL: "https://git.test/lib", Commit: strings.Repeat("a", 40)}
	inner := inclusion.Submodule{Path: "vendor/lib/inner", URL: "ssh://git@git.test/inner", Commit: strings.Repeat("b", 40)}
	recorded := map[string]string{}
	inclusion.RecordSubmodules(recorded, []inclusion.Submodule{lib, inner})
	for name, tc := range map[string]struct {
		metadata map[string]string
		file     string
		of       inclusion.Submodule
		there    string
		is       bool
	}{
		"of a submodule":           {recorded, "vendor/lib/deploy/web.yaml", lib, "deploy/web.yaml", true},
		"of one within it":         {recorded, "vendor/lib/inner/web.yaml", inner, "web.yaml", true},
		"beside it":                {recorded, "vendor/library/web.yaml", inclusion.Submodule{}, "", false},
		"of the commit":            {recorded, "web.yaml", inclusion.Submodule{}, "", false},
		"nothing is recorded":      {nil, "vendor/lib/web.yaml", inclusion.Submodule{}, "", false},
		"what is recorded is none": {map[string]string{"gitops.flotilla.io/submodules": "{"}, "vendor/lib/web.yaml", inclusion.Submodule{}, "", false},
	} {
		of, there, is := inclusion.OfSubmodule(tc.metadata, tc.file)
		if diff := cmp.Diff([]any{tc.of, tc.there, tc.is}, []any{of, there, is}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestManySubmodules: a status holds only so much; of the first it stays known.
func TestManySubmodules(t *testing.T) {
	var all []inclusion.Submodule
	for n := range 20 {
		all = append(all, inclusion.Submodule{Path: fmt.Sprintf("%s/%d", strings.Repeat("x", 1000), n), URL: "https://git.test/lib"})
	}
	metadata := map[string]string{}
	inclusion.RecordSubmodules(metadata, all)
	if size := len(metadata["gitops.flotilla.io/submodules"]); size > 8<<10 || size < 7<<10 {
		t.Errorf("%d bytes are recorded", size)
	}
	if _, _, is := inclusion.OfSubmodule(metadata, all[0].Path+"/a.yaml"); !is {
		t.Error("the first is not known")
	}
	none := map[string]string{}
	if inclusion.RecordSubmodules(none, nil); len(none) != 0 {
		t.Errorf("without any it says %v", none)
	}
}

// TestLeftOut: of which submodule a folder is, is known of as many as are recorded.
func TestLeftOut(t *testing.T) {
	metadata := map[string]string{}
	inclusion.RecordLeftOut(metadata, nil)
	if len(metadata) > 0 {
		t.Errorf("without any it is recorded %v", metadata)
	}
	inclusion.RecordLeftOut(metadata, []string{"lib", "vendor/base"})
	recorded := metadata["gitops.flotilla.io/submodules-left-out"]
	for folder, want := range map[string]string{"./lib": "lib", "lib/a": "lib", "library": "", "vendor/base/x/": "vendor/base", "vendor": "", "": "", "../lib": "lib"} {
		if got := inclusion.LeftOut(recorded, folder); got != want {
			t.Errorf("%q is of %q, want %q", folder, got, want)
		}
	}
	if got := inclusion.LeftOut("", "lib"); got != "" {
		t.Errorf("where nothing is recorded: %q", got)
	}
}
