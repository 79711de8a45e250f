package planning

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/reconciler/forecast/snapshot"
)

// followed is a fleet whose Kustomization flux-system applies the folder clusters of the repository fleet.
func followed(s *snapshot.Snapshot) {
	ks := kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "flux-system"}}
	ks.Spec.Prune, ks.Spec.Path = true, "./clusters"
	ks.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "fleet"}
	s.Kustomizations = append(s.Kustomizations, ks)
}

// TestPlanSource: all Kustomizations of a source are followed: one is renamed, one comes, one goes, an object moves, and one
// wants what another one has.
func TestPlanSource(t *testing.T) {
	file := exported(t, followed)
	for name, args := range map[string][]string{
		"source-text":          {"--source", "gitrepository/fleet.flux-system"},
		"source-markdown":      {"--source", "fleet", "-n", "flux-system", "-o", "markdown"},
		"source-json":          {"--source", "GitRepository/fleet.flux-system", "-o", "json"},
		"source-kustomization": {"--source", "fleet.flux-system", "--kustomization", "flux-system/cache", "--exit-code"},
	} {
		t.Run(name, func(t *testing.T) {
			got := call(t, "", append([]string{"plan", "testdata/source/head", "--base", "testdata/source/base", "--fleet", file}, args...)...)
			golden(t, name+".golden", got.String())
		})
	}
}

// TestPlanSourceIgnores: what a source leaves out is not planned.
func TestPlanSourceIgnores(t *testing.T) {
	ignore := "/clusters/more.yaml\n"
	file := exported(t, followed, func(s *snapshot.Snapshot) {
		s.Sources = append(s.Sources, snapshot.Source{Kind: "GitRepository", Namespace: "flux-system", Name: "fleet", Ignore: &ignore})
	})
	head := t.TempDir()
	if err := os.CopyFS(head, os.DirFS("testdata/source/base")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(head, "clusters", "more.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more, namespace: shop}\n")
	got := call(t, "", "plan", head, "--base", "testdata/source/base", "--fleet", file, "--source", "fleet.flux-system", "--exit-code")
	if got.Code != 0 || got.Out != "Nothing changes in any cluster.\n" {
		t.Errorf("got %s", got)
	}
}

// TestPlanBreaks: a change that a Kustomization will not apply is wrong, whatever else of it changes something.
func TestPlanBreaks(t *testing.T) {
	file := exported(t, followed)
	head := t.TempDir()
	if err := os.CopyFS(head, os.DirFS("testdata/source/head")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(head, "clusters", "broken.yaml"), "kind: [\n")
	got := call(t, "", "plan", head, "--base", "testdata/source/base", "--fleet", file, "--source", "fleet.flux-system", "--exit-code")
	if got.Code != 2 || !strings.Contains(got.Out, "BuildFails") || got.Err != "" {
		t.Errorf("got %s", got)
	}
}

// TestPlanStillBroken: one that could not be built before, and cannot be built after, is no risk of the change, and named.
func TestPlanStillBroken(t *testing.T) {
	file := exported(t, followed)
	base := t.TempDir()
	if err := os.CopyFS(base, os.DirFS("testdata/source/base")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(base, "db", "broken.yaml"), "a: b\n")
	got := call(t, "", "plan", base, "--base", base, "--fleet", file, "--source", "fleet.flux-system", "--exit-code")
	const want = "warning: Kustomization flux-system/db applies neither what was before nor the change: db/broken.yaml: invalid manifest"
	if got.Code != 0 || got.Out != "Nothing changes in any cluster.\n" || !strings.HasPrefix(got.Err, want) {
		t.Errorf("got %s", got)
	}
}

// TestPlanRevisions: two revisions of a repository, or one and the worktree, are compared as their folders are.
func TestPlanRevisions(t *testing.T) {
	file := exported(t, followed)
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	lay := func(folder string) {
		t.Helper()
		for _, name := range []string{"clusters", "web", "db", "jobs", "cache", "late"} {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
		git("add", "-A")
	}
	git("init", "-q", "-b", "main")
	lay("testdata/source/base")
	git("commit", "-q", "-m", "base")
	git("switch", "-q", "-c", "change")
	lay("testdata/source/head")
	git("commit", "-q", "-m", "head")
	git("switch", "-q", "main")
	git("commit", "-q", "--allow-empty", "-m", "main goes on")
	git("switch", "-q", "change")

	ask := func(args ...string) string {
		t.Helper()
		got := call(t, "", append([]string{"plan", "--fleet", file, "--source", "fleet.flux-system"}, args...)...)
		if got.Code != 0 {
			t.Fatalf("plan %v: %s", args, got)
		}
		return got.Out
	}
	folders := ask("testdata/source/head", "--base", "testdata/source/base")
	worktree := ask(dir, "--base", "main")
	if worktree != folders {
		t.Errorf("the worktree and a branch:\n%s\nwant\n%s", worktree, folders)
	}
	named := ask(dir, "--base", "main", "--head", "change")
	if !strings.Contains(named, "revision change@sha1:") || strings.Contains(named, "this change") {
		t.Errorf("the revision is not named: %s", named)
	}
	t.Chdir(dir)
	if got := ask("main..change"); got != named {
		t.Errorf("main..change:\n%s\nwant\n%s", got, named)
	}
	if got := ask("main...change"); got != named {
		t.Errorf("main...change:\n%s\nwant\n%s", got, named)
	}
	if got := ask("change..change"); got != "Nothing changes in any cluster.\n" {
		t.Errorf("change..change: %s", got)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"nowhere..change"}, `"nowhere" is no revision of the repository: git fetch`},
		{[]string{".", "--base", "nowhere"}, `there is no file or folder nowhere, and "nowhere" is no revision of the repository`},
		{[]string{".", "--base", "main", "--head", "nowhere"}, `"nowhere" is no revision of the repository`},
		{[]string{"a", "b", "--base", "main", "--head", "change"}, "at most one folder"},
	} {
		got := call(t, "", append([]string{"plan", "--fleet", file, "--source", "fleet.flux-system"}, tc.args...)...)
		if got.Code != 2 || !strings.Contains(got.Err, tc.want) || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("%v: want %q in %s", tc.args, tc.want, got)
		}
	}
}

// TestSourceFlag: what is wrong with --source is said on one line.
func TestSourceFlag(t *testing.T) {
	file := exported(t, followed)
	for value, want := range map[string]string{
		"gitrepository/other.flux-system": "no Kustomization has the source GitRepository flux-system/other: flotilla get kustomizations -A lists them with theirs",
		"fleet":                           "no Kustomization has the source GitRepository default/fleet",
		"helmrepository/fleet":            `--source "helmrepository/fleet" is not [KIND/]NAME[.NAMESPACE]`,
		"flux-system/gitrepository/fleet": "is not [KIND/]NAME[.NAMESPACE]",
	} {
		got := call(t, "", "plan", "testdata/source/head", "--base", "testdata/source/base", "--fleet", file, "--source", value)
		if got.Code != 2 || !strings.Contains(got.Err, want) || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("--source %s: want %q in %s", value, want, got)
		}
	}
	got := call(t, "", "plan", "testdata/source/head", "--base", "testdata/source/base", "--fleet", file, "--source", "fleet.flux-system", "--kustomization", "a/b")
	if got.Code != 2 || !strings.Contains(got.Err, "there is no Kustomization a/b before or after the change") {
		t.Errorf("a Kustomization that nobody has: %s", got)
	}
	got = call(t, "", "plan", "testdata/source/head/clusters/all.yaml", "--base", "testdata/source/base", "--fleet", file, "--source", "fleet.flux-system")
	if got.Code != 2 || !strings.Contains(got.Err, "is not one folder: with --source and --kustomization, name the root of the repository") {
		t.Errorf("a file: %s", got)
	}
}
