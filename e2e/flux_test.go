package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// fluxVersion is what the command line calls itself.
const fluxVersion = "2.9.5"

// buildFlux builds Flux's command line out of its own module and returns the
// program. The manifests that it installs Flux with are not part of its module:
// a copy of the module gets an empty one in their place, as nothing is installed
// here.
func buildFlux() (string, error) {
	module, err := filepath.Abs("flux")
	if err != nil {
		return "", err
	}
	const path = "github.com/fluxcd/flux2/v2"
	if _, err := inModule(module, "mod", "download", path); err != nil {
		return "", err
	}
	original, err := inModule(module, "list", "-m", "-f", "{{.Dir}}", path)
	if err != nil {
		return "", err
	}
	source := filepath.Join(module, "bin", "src")
	if err := errors.Join(os.RemoveAll(source), os.CopyFS(source, os.DirFS(original)), write(filepath.Join(source, "cmd", "flux", "manifests", "none.yaml"), nil)); err != nil {
		return "", err
	}
	for from, to := range map[string]string{"go.mod": "build.mod", "go.sum": "build.sum"} {
		content, err := os.ReadFile(filepath.Join(module, from))
		if err := errors.Join(err, write(filepath.Join(module, "bin", to), content)); err != nil {
			return "", err
		}
	}
	if _, err := inModule(module, "mod", "edit", "-replace", path+"=./bin/src", filepath.Join("bin", "build.mod")); err != nil {
		return "", err
	}
	binary := filepath.Join(module, "bin", "flux")
	_, err = inModule(module, "build", "-modfile", filepath.Join("bin", "build.mod"), "-ldflags", "-s -w -X main.VERSION="+fluxVersion, "-o", binary, path+"/cmd/flux")
	return binary, err
}

func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

// flux runs Flux's command line against the control plane, in one namespace.
type flux struct {
	t         *testing.T
	binary    string
	namespace string
	cache     string
}

// run returns what was printed, and the error of one that did not exit with 0.
func (f flux) run(args ...string) (string, error) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), slack*2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.binary, append(args, "--kubeconfig", the.Hub.Kubeconfig, "--cache-dir", f.cache, "--timeout", "90s")...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// fluxStep is one call and what it prints: regular expressions, of a line each.
type fluxStep struct {
	args  string
	want  []string
	fails bool
}

// check makes the calls, one after the other.
func (f flux) check(steps []fluxStep) {
	f.t.Helper()
	for _, step := range steps {
		args := strings.Fields(strings.ReplaceAll(step.args, "NAMESPACE", f.namespace))
		out, err := f.run(args...)
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) || (err != nil) != step.fails {
			f.t.Fatalf("flux %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		for _, want := range step.want {
			want = strings.ReplaceAll(want, "NAMESPACE", f.namespace)
			if !regexp.MustCompile(`(?m)` + want).MatchString(out) {
				f.t.Errorf("flux %s does not print %q; it prints:\n%s", strings.Join(args, " "), want, out)
			}
		}
	}
}

// TestFluxCommandLine works with the real command line of Flux as its users do.
func TestFluxCommandLine(t *testing.T) {
	f := flux{t: t, binary: built(t, fluxProgram), namespace: fleet.NameOf(t), cache: t.TempDir()}
	repo := the.repository(t)
	repo.write("app/web.yaml", fmt.Sprintf(byHandApp, f.namespace, "nginx:1.29"))
	first := repo.push("first")
	the.follow(t, repo.url, "interval: 1h", "interval: 1h")
	the.applied(t, f.namespace, first, time.Minute)
	eventually(t, 30*time.Second, "Events tell of it", func(ctx context.Context) error { // they come after it
		var list corev1.EventList
		if err := the.hub.List(ctx, &list, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		var reasons []string
		for _, e := range list.Items {
			reasons = append(reasons, e.Reason)
		}
		if !slices.Contains(reasons, "NewArtifact") || !slices.Contains(reasons, "ReconciliationSucceeded") {
			return fmt.Errorf("there are %v", reasons)
		}
		return nil
	})

	t.Run("looks", func(t *testing.T) { f.runs(t, first) })
	t.Run("reconciles", func(t *testing.T) { f.reconciles(t, repo) })
	t.Run("suspends and resumes", func(t *testing.T) { f.suspends(t, repo) })
	t.Run("creates and deletes", func(t *testing.T) { f.creates(t, repo) })
	t.Run("compares", func(t *testing.T) { f.compares(t, repo) })
}

// looks reads what the fleet has.
func (f flux) runs(t *testing.T, commit string) {
	f.t = t
	short := "main@sha1:" + commit[:8]
	f.check([]fluxStep{
		{args: "get all -n NAMESPACE", want: []string{
			`^gitrepository/src\s+` + short + `\s+False\s+True\s+stored artifact for revision '` + short + `'`,
			`^kustomization/app\s+` + short + `\s+False\s+True\s+Applied revision: ` + short,
			`^provider/commits\s+True`, `^alert/commits\s+False\s+True`,
		}},
		{args: "get sources all -A", want: []string{`^NAMESPACE\s+gitrepository/src\s+` + short}},
		{args: "get sources git src -n NAMESPACE --no-header", want: []string{`^src\s+` + short + `\s+False\s+True`}},
		{args: "get kustomizations -n NAMESPACE --status-selector ready=true", want: []string{`^app\s+` + short}},
		{args: "get kustomizations none -n NAMESPACE", want: []string{`not found`}, fails: true},
		{args: "get alert-providers -n NAMESPACE", want: []string{`^commits\s+True\s+Provider is Ready`}},
		{args: "events -n NAMESPACE --for Kustomization/app", want: []string{
			`Normal\s+ReconciliationSucceeded\s+Kustomization/app\s+Applied revision: main@sha1:` + commit,
			`Normal\s+NewArtifact\s+GitRepository/src\s+stored artifact for commit 'first'`,
		}},
		{args: "tree kustomization app -n NAMESPACE", want: []string{`^Kustomization/NAMESPACE/app$`, `── Deployment/NAMESPACE/web$`, `── PropagationPolicy/NAMESPACE/web$`}},
		{args: "trace deployment web -n NAMESPACE", want: []string{
			`^Status:\s+Managed by Flux$`, `^Kustomization:\s+app$`, `^Path:\s+\./app$`, `^GitRepository:\s+src$`, `^Revision:\s+main@sha1:` + commit + `$`,
		}},
		{args: "export source git src -n NAMESPACE", want: []string{`^kind: GitRepository$`, `^    branch: main$`}},
		{args: "export kustomization --all -n NAMESPACE", want: []string{`^  path: \./app$`}},
		{args: "debug kustomization app -n NAMESPACE --show-status", want: []string{`^lastAppliedRevision: main@sha1:` + commit + `$`}},
		{args: "debug kustomization app -n NAMESPACE --show-history", want: []string{`gitops\.flotilla\.io/commit-subject: first`}},
		{args: "stats -n NAMESPACE", want: []string{`^GitRepository\s+1\s+0\s+0\s+[\d.]+ \w?i?B`, `^Kustomization\s+1\s+0\s+0`}},
		{args: "check --pre", want: []string{`prerequisites checks passed`}},
		{args: "version --client", want: []string{`^flux: v` + fluxVersion}},
	})
}

// reconciles brings commits to the fleet that it would find in an hour.
func (f flux) reconciles(t *testing.T, repo *repository) {
	f.t = t
	repo.write("app/web.yaml", fmt.Sprintf(byHandApp, f.namespace, "nginx:1.30"))
	second := repo.push("second")
	f.check([]fluxStep{
		{args: "reconcile source git src -n NAMESPACE", want: []string{`waiting for GitRepository reconciliation`, `✔ fetched revision main@sha1:` + second}},
		{args: "reconcile kustomization app -n NAMESPACE", want: []string{`✔ applied revision main@sha1:` + second}},
	})
	repo.write("app/web.yaml", fmt.Sprintf(byHandApp, f.namespace, "nginx:1.31"))
	third := repo.push("third")
	f.check([]fluxStep{
		{args: "reconcile kustomization app --with-source -n NAMESPACE", want: []string{`✔ fetched revision main@sha1:` + third, `✔ applied revision main@sha1:` + third}},
		{args: "reconcile kustomization none -n NAMESPACE", want: []string{`"none" not found`}, fails: true},
	})
}

// suspends stops the fleet from following, for a while.
func (f flux) suspends(t *testing.T, repo *repository) {
	f.t = t
	f.check([]fluxStep{
		{args: "suspend kustomization app -n NAMESPACE", want: []string{`✔ kustomization suspended`}},
		{args: "suspend source git --all -n NAMESPACE", want: []string{`✔ source git suspended`}},
		{args: "get all -n NAMESPACE", want: []string{`^gitrepository/src\s+\S+\s+True\s+True`, `^kustomization/app\s+\S+\s+True\s+True`}},
		{args: "reconcile kustomization app -n NAMESPACE", want: []string{`resource is suspended`}, fails: true},
	})
	repo.write("app/web.yaml", fmt.Sprintf(byHandApp, f.namespace, "nginx:1.32"))
	commit := repo.push("while nobody looks")
	f.check([]fluxStep{
		{args: "resume source git src -n NAMESPACE", want: []string{`✔ GitRepository src reconciliation completed`, `✔ fetched revision main@sha1:` + commit}},
		{args: "resume kustomization app -n NAMESPACE", want: []string{`✔ Kustomization app reconciliation completed`, `✔ applied revision main@sha1:` + commit}},
		{args: "suspend alert commits -n NAMESPACE", want: []string{`✔ alert suspended`}},
		{args: "resume alert commits -n NAMESPACE", want: []string{`✔ Alert reconciliation completed`}},
	})
}

// creates makes objects by commands and removes them.
func (f flux) creates(t *testing.T, repo *repository) {
	f.t = t
	the.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s-two}", f.namespace))
	f.check([]fluxStep{
		{args: "create secret git access -n NAMESPACE --url=https://git.example.com/x --username=u --password=p", want: []string{`git secret 'access' created`}},
		{args: "create source git second -n NAMESPACE --branch=main --interval=1h --url=" + repo.url, want: []string{`✔ GitRepository source reconciliation completed`, `✔ fetched revision: main@sha1:`}},
		{args: "create kustomization second -n NAMESPACE --source=GitRepository/second --path=./app --interval=1h --prune=true --target-namespace=NAMESPACE-two",
			want: []string{`✔ Kustomization second is ready`, `✔ applied revision main@sha1:`}},
		{args: "create alert-provider hook -n NAMESPACE --type=generic --address=http://127.0.0.1:1/", want: []string{`✔ Provider hook is ready`}},
		{args: "create alert hook -n NAMESPACE --provider-ref=hook --event-source=Kustomization/none", want: []string{`✔ Alert hook is ready`}},
		{args: "create tenant team --with-namespace=NAMESPACE-team", want: []string{`✔ tenant setup completed`}},
		{args: "create helmrelease web -n NAMESPACE --source=HelmRepository/x --chart=x", want: []string{`no matches for helm\.toolkit\.fluxcd\.io`}, fails: true},
		{args: "delete alert hook -n NAMESPACE --silent", want: []string{`✔ alert deleted`}},
		{args: "delete alert-provider hook -n NAMESPACE --silent", want: []string{`✔ alert provider deleted`}},
		{args: "delete kustomization second -n NAMESPACE --silent", want: []string{`✔ kustomization deleted`}},
		{args: "delete source git second -n NAMESPACE --silent", want: []string{`✔ source git deleted`}},
	})
	the.Kubectl(t, "", "delete", "namespace", f.namespace+"-team", "--wait=false")
}

// compares files with what the fleet has.
func (f flux) compares(t *testing.T, repo *repository) {
	f.t = t
	app := filepath.Join(repo.tree, "app")
	f.check([]fluxStep{
		{args: "build kustomization app -n NAMESPACE --path " + app, want: []string{`^kind: Deployment$`, `kustomize\.toolkit\.fluxcd\.io/name: app`}},
		{args: "diff kustomization app -n NAMESPACE --path " + app},
	})
	repo.write("app/web.yaml", fmt.Sprintf(byHandApp, f.namespace, "nginx:2.0"))
	f.check([]fluxStep{
		{args: "diff kustomization app -n NAMESPACE --path " + app, want: []string{`► Deployment/NAMESPACE/web drifted`, `\+ nginx:2\.0`}, fails: true},
	})
}
