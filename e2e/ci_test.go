package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/examples"
)

// pipeline is how an example of a CI system says what its jobs run, and what that system tells them.
type pipeline struct {
	file     string
	commands func(t *testing.T, content []byte, job string) string
	// told has the variables of a job for a change of branch main, in a folder of its own.
	told func(dir string) []string
	// plan is where the plan is, from the folder.
	plan string
}

// TestCI runs the commands of examples/ci as these systems do: one job writes the fleet to a branch, another one says by that alone what a
// change does, and fails for one that cannot be built.
func TestCI(t *testing.T) {
	t.Parallel()
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	repo.write("app/web.yaml", fmt.Sprintf(reviewed, namespace, "1.29"))
	first := repo.push("the application")
	the.follow(t, repo.url, "", "")
	the.applied(t, namespace, first, 2*time.Minute)
	repo.git("branch", "same")
	repo.git("checkout", "--quiet", "-b", "next")
	for branch, content := range map[string]string{"next": fmt.Sprintf(reviewed, namespace, "1.30"), "broken": "kind: [\n"} {
		repo.git("checkout", "--quiet", "-B", branch, first)
		repo.write("app/web.yaml", content)
		repo.git("add", "--all")
		repo.git("commit", "--quiet", "-m", branch)
	}
	repo.git("push", "--quiet", "origin", "same", "next", "broken")

	github := func(dir string) []string {
		return []string{"GITHUB_BASE_REF=main", "RUNNER_TEMP=" + dir, "GITHUB_STEP_SUMMARY=" + filepath.Join(dir, "summary.md")}
	}
	gitlab := func(dir string) []string {
		return []string{"CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main", "TMPDIR=" + dir, "FLEET_REPOSITORY=" + repo.url, "FLEET_READER_KUBECONFIG=" + the.Hub.Kubeconfig}
	}
	for name, of := range map[string]pipeline{
		"GitHub": {"github.yml", steps, github, "summary.md"},
		"Gitea":  {"gitea.yml", steps, github, "summary.md"},
		"GitLab": {"gitlab.yml", script, gitlab, "checkout/plan.md"},
	} {
		t.Run(name, func(t *testing.T) {
			content, err := examples.Files.ReadFile("ci/" + of.file)
			if err != nil {
				t.Fatal(err)
			}
			kubeconfig, err := os.ReadFile(the.Hub.Kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			if out, _, err := runJob(t, repo.url, "main", of, of.commands(t, content, "export"), "KUBECONFIG_CONTENT="+string(kubeconfig)); err != nil {
				t.Fatalf("the export: %v\n%s", err, out)
			}
			if got := repo.git("ls-remote", "origin", "refs/heads/fleet"); got == "" {
				t.Fatal("there is no branch with the fleet")
			}
			plan := of.commands(t, content, "plan")
			for branch, want := range map[string]string{"same": "Nothing changes in any cluster.", "next": "-      - image: nginx:1.29\n+      - image: nginx:1.30\n"} {
				out, said, err := runJob(t, repo.url, branch, of, plan, "SOURCE=gitrepository/src."+namespace)
				if err != nil || !strings.Contains(said, want) || !strings.Contains(out, want) {
					t.Errorf("%s: %v\n%s\n%s", branch, err, said, out)
				}
			}
			if out, _, err := runJob(t, repo.url, "broken", of, plan, "SOURCE=gitrepository/src."+namespace); err == nil || !strings.Contains(out, "app/web.yaml") {
				t.Errorf("what cannot be built does not fail: %v\n%s", err, out)
			}
		})
	}
	same := func(name string) string {
		content, err := examples.Files.ReadFile("ci/" + name)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(content), "\n")
		return rest
	}
	if diff := cmp.Diff(same("github.yml"), same("gitea.yml")); diff != "" {
		t.Errorf("what GitHub runs is not what Gitea does (-github +gitea):\n%s", diff)
	}
}

// runJob runs commands in a clone of a branch, as a CI system does, and returns what they print, and the plan.
func runJob(t *testing.T, url, branch string, of pipeline, commands string, variables ...string) (out, plan string, err error) {
	t.Helper()
	dir := t.TempDir()
	git := exec.CommandContext(t.Context(), "git", "clone", "--quiet", "--branch", branch, "--single-branch", url, filepath.Join(dir, "checkout"))
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("clone: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
	cmd.Dir = filepath.Join(dir, "checkout")
	cmd.Env = append([]string{"PATH=" + filepath.Dir(fleet.Program("flotilla")) + ":" + os.Getenv("PATH"), "HOME=" + dir}, append(of.told(dir), variables...)...)
	printed, err := cmd.CombinedOutput()
	said, _ := os.ReadFile(filepath.Join(dir, of.plan)) // an export has none
	return string(printed), string(said), err
}

// steps are the commands of a job of GitHub's form.
func steps(t *testing.T, content []byte, job string) string {
	t.Helper()
	var file struct {
		Jobs map[string]struct {
			Steps []struct{ Run string }
		}
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, step := range file.Jobs[job].Steps {
		out = append(out, step.Run)
	}
	return strings.Join(out, "\n")
}

// script are the commands of a job of GitLab's form.
func script(t *testing.T, content []byte, job string) string {
	t.Helper()
	var file map[string]any
	if err := yaml.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	of, _ := file[job].(map[string]any)
	lines, _ := of["script"].([]any)
	var out []string
	for _, line := range lines {
		out = append(out, fmt.Sprint(line))
	}
	return strings.Join(out, "\n")
}
