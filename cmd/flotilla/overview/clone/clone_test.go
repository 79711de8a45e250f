package clone_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/clone"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/lineage"
	"github.com/flotilla-io/flotilla/internal/gitserver"
)

// TestLastChange: the commit is that of the file, also from a folder below, and nobody's where the clone does not
// know.
func TestLastChange(t *testing.T) {
	tree := t.TempDir()
	git := func(dir string, args ...string) string {
		t.Helper()
		out, err := gitserver.Git(t.Context(), dir, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	commit := func(file, message string) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(tree, filepath.Dir(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tree, file), []byte(message), 0o644); err != nil {
			t.Fatal(err)
		}
		git(tree, "add", "--all")
		git(tree, "commit", "--quiet", "--date=2026-03-05T08:00:00Z", "-m", message)
		return git(tree, "rev-parse", "HEAD")
	}
	git(tree, "init", "--quiet", "--initial-branch=main")
	first := commit("app/web.yaml", "Sell things")
	head := commit("app/db.yaml", "Store them")
	later := commit("app/web.yaml", "Sell more")
	shallow := filepath.Join(t.TempDir(), "shallow")
	git(tree, "clone", "--quiet", "--depth=1", "file://"+tree, shallow)

	web := &lineage.Commit{Revision: "sha1:" + first, Author: "Flotilla Demo <demo@localhost>", Date: "2026-03-05T08:00:00Z", Subject: "Sell things"}
	for name, tc := range map[string]struct {
		dir, commit, file string
		want              *lineage.Commit
	}{
		"the commit is later than the file":   {tree, head, "app/web.yaml", web},
		"from a folder below":                 {filepath.Join(tree, "app"), head, "app/web.yaml", web},
		"a file that is not there":            {tree, head, "app/none.yaml", nil},
		"a name that is a pattern":            {tree, head, "app/*.yaml", nil},
		"a commit that the clone has not":     {tree, "0123456789012345678901234567890123456789", "app/web.yaml", nil},
		"what is no commit":                   {tree, "--all", "app/web.yaml", nil},
		"a folder that is no clone":           {t.TempDir(), head, "app/web.yaml", nil},
		"a clone without what is behind":      {shallow, later, "app/web.yaml", nil},
		"no file, as a generator made it all": {tree, head, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := clone.LastChange(t.Context(), tc.dir, tc.commit, tc.file)
			if got != nil {
				got.Date = cmpDate(got.Date)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// cmpDate is a date as every version of git writes it.
func cmpDate(date string) string {
	if n := len(date) - len("+00:00"); n > 0 && date[n:] == "+00:00" {
		return date[:n] + "Z"
	}
	return date
}
