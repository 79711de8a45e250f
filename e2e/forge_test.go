package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// forge is a real Gitea with one user.
type forge struct {
	url   string
	token string
	owner string
}

const forgeConfig = `
APP_NAME = e2e
RUN_USER = %[1]s
WORK_PATH = %[2]s
[server]
PROTOCOL = http
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[3]d
ROOT_URL = http://127.0.0.1:%[3]d/
STATIC_ROOT_PATH = %[4]s
OFFLINE_MODE = true
DISABLE_SSH = true
[database]
DB_TYPE = sqlite3
PATH = %[2]s/gitea.db
[repository]
ROOT = %[2]s/repositories
[security]
INSTALL_LOCK = true
[webhook]
ALLOWED_HOST_LIST = loopback
[log]
LEVEL = warn
ROOT_PATH = %[2]s/log
[cron]
ENABLED = false
`

// startForge runs Gitea for the time of the test.
func startForge(t *testing.T) *forge {
	t.Helper()
	dir := t.TempDir()
	binary, static := installForge(t)
	port, err := localfleet.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	runAs := forgeUser(t)
	config := filepath.Join(dir, "app.ini")
	if err := os.WriteFile(config, fmt.Appendf(nil, forgeConfig, runAs.Username, dir, port, static), 0o644); err != nil {
		t.Fatal(err)
	}
	openTo(t, runAs, dir)
	g := gitea{t: t, binary: binary, config: config, dir: dir, user: runAs}
	g.run("migrate")
	out := g.run("admin", "user", "create", "--admin", "--username", "fleet", "--password", "fleet-e2e-password",
		"--email", "fleet@localhost", "--must-change-password=false", "--access-token", "--access-token-scopes", "all")
	f := &forge{url: fmt.Sprintf("http://127.0.0.1:%d", port), token: tokenIn(out), owner: "fleet"}
	g.serve()
	eventually(t, time.Minute, "the forge answers", func(ctx context.Context) error {
		_, err := f.call(ctx, http.MethodGet, "/api/v1/version", nil)
		return err
	})
	return f
}

// buildForge builds Gitea out of its own module and returns the program. It serves a few requests: what makes it fast,
// or eases debugging, takes longer to compile than it saves.
func buildForge() (string, error) {
	module, err := filepath.Abs("forge")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(module, "bin", "gitea")
	_, err = inModuleWith([]string{"CGO_ENABLED=1", "CGO_CFLAGS=-O0"}, module, "build", "-tags", "sqlite sqlite_unlock_notify",
		"-gcflags=all=-l -dwarf=false", "-ldflags=-w -s", "-o", binary, "code.gitea.io/gitea")
	return binary, err
}

// installForge returns a copy of the program and its static files that another user may
// read.
func installForge(t *testing.T) (program, static string) {
	t.Helper()
	binary := built(t, giteaProgram)
	source, err := inModule(filepath.Dir(filepath.Dir(binary)), "list", "-m", "-f", "{{.Dir}}", "code.gitea.io/gitea")
	if err != nil {
		t.Fatal(err)
	}
	static = readableDir(t)
	program = filepath.Join(static, "gitea")
	copyFile(t, binary, program)
	for _, folder := range []string{"templates", "options", "public"} {
		if err := os.CopyFS(filepath.Join(static, folder), os.DirFS(filepath.Join(source, folder))); err != nil {
			t.Fatal(err)
		}
	}
	return program, static
}

// readableDir is a folder below the system's temporary one that every user may
// enter: t.TempDir is not, for a user that is not root.
func readableDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "flotilla-forge-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// gitea runs the forge's program with its configuration.
type gitea struct {
	t                   *testing.T
	binary, config, dir string
	user                *user.User
}

func (g gitea) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, g.binary, append([]string{"--config", g.config}, args...)...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "HOME="+g.dir, "USER="+g.user.Username, "GITEA_WORK_DIR="+g.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		uid, _ := strconv.ParseUint(g.user.Uid, 10, 32)
		gid, _ := strconv.ParseUint(g.user.Gid, 10, 32)
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return cmd
}

func (g gitea) run(args ...string) string {
	g.t.Helper()
	out, err := g.command(g.t.Context(), args...).CombinedOutput()
	if err != nil {
		g.t.Fatalf("gitea %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

func (g gitea) serve() {
	g.t.Helper()
	cmd := g.command(context.WithoutCancel(g.t.Context()), "web")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if g.t.Failed() {
			g.t.Logf("the forge said:\n%s", log.String())
		}
	})
}

// forgeUser is who the forge runs as: never root, it refuses that.
func forgeUser(t *testing.T) *user.User {
	t.Helper()
	who, err := user.Current()
	if err == nil && who.Uid == "0" {
		who, err = user.Lookup("nobody")
	}
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// openTo gives a folder to the user and lets everybody pass through its parents.
func openTo(t *testing.T, who *user.User, dir string) {
	t.Helper()
	uid, _ := strconv.Atoi(who.Uid)
	gid, _ := strconv.Atoi(who.Gid)
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && os.Getuid() == 0 {
			err = os.Chown(path, uid, gid)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for parent := filepath.Dir(dir); parent != os.TempDir() && parent != "/"; parent = filepath.Dir(parent) {
		if err := os.Chmod(parent, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// tokenIn finds the access token in what the forge printed: its last word.
func tokenIn(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "token") {
			words := strings.Fields(line)
			return words[len(words)-1]
		}
	}
	return ""
}

func (f *forge) call(ctx context.Context, method, path string, body any) ([]byte, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, f.url+path, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "token "+f.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", method, path, res.Status, out)
	}
	return out, err
}

// repository makes a repository on the forge with a work tree that pushes to it.
func (f *forge) repository(t *testing.T) *repository {
	t.Helper()
	name := fleet.NameOf(t)
	if _, err := f.call(t.Context(), http.MethodPost, "/api/v1/user/repos", map[string]any{"name": name, "default_branch": "main"}); err != nil {
		t.Fatal(err)
	}
	r := &repository{t: t, url: fmt.Sprintf("%s/%s/%s.git", f.url, f.owner, name), tree: t.TempDir()}
	r.git("init", "--quiet", "--initial-branch=main")
	r.git("remote", "add", "origin", strings.Replace(r.url, "http://", "http://"+f.owner+":"+f.token+"@", 1))
	return r
}

// commitStatus is one status as the forge shows it.
type commitStatus struct {
	ID          int64  `json:"id"`
	State       string `json:"status"`
	Context     string `json:"context"`
	Description string `json:"description"`
}

// statuses are all that were ever posted for a commit, newest first.
func (f *forge) statuses(ctx context.Context, repo, commit string) ([]commitStatus, error) {
	out, err := f.call(ctx, http.MethodGet, fmt.Sprintf("/api/v1/repos/%s/%s/statuses/%s", f.owner, repo, commit), nil)
	if err != nil {
		return nil, err
	}
	var list []commitStatus
	err = json.Unmarshal(out, &list)
	// Those of one second come in any order.
	slices.SortFunc(list, func(a, b commitStatus) int { return cmp.Compare(b.ID, a.ID) })
	return list, err
}

const forgeAccess = `
apiVersion: v1
kind: Secret
metadata: {name: forge, namespace: %[1]s}
stringData: {token: %[2]s, username: fleet, password: %[2]s}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata: {name: commits, namespace: %[1]s}
spec:
  type: gitea
  address: %[3]s
  secretRef: {name: forge}
`

// TestForge follows a private repository on a real Gitea and finds the outcome
// on its commits: pending while it rolls, then success; failure for a bad one.
func TestForge(t *testing.T) {
	f := startForge(t)
	repo := f.repository(t)
	namespace := fleet.NameOf(t)
	repo.write("app/web.yaml", fmt.Sprintf(byHandApp, namespace, "nginx:1.29"))
	good := repo.push("good")
	the.follow(t, repo.url, "secretRef: {name: forge}", "suspend: true")
	the.Apply(t, fmt.Sprintf(forgeAccess, namespace, f.token, strings.TrimSuffix(repo.url, ".git")))
	// Only now, lest it be ready before the provider is known.
	the.Kubectl(t, "", "patch", "kustomization", "app", "-n", namespace, "--type=merge", "-p", `{"spec":{"suspend":false}}`)

	f.ends(t, good, own, "success", "3/3 clusters ready")
	f.ends(t, good, sum, "success", "1 ready")
	f.began(t, good)

	repo.write("app/web.yaml", fmt.Sprintf(byHandApp, namespace, "fake/nginx:1.30"))
	bad := repo.push("an image that cannot be pulled")
	f.ends(t, bad, own, "pending", "0/3 clusters ready")
	f.ends(t, bad, sum, "pending", "app: 0/3 clusters ready")

	last := repo.revert()
	for _, context := range []string{own, sum} {
		f.ends(t, last, context, "success", map[string]string{own: "3/3 clusters ready", sum: "1 ready"}[context])
		f.ends(t, bad, context, "", "superseded by "+last[:8])
	}
}

// How the contexts begin of a Kustomization, and of all that apply its source.
const own, sum = "kustomization/app/", "flotilla/src"

// ends waits until the newest status of a commit says so in the context that begins so. An empty state takes
// any but pending.
func (f *forge) ends(t *testing.T, commit, where, state, says string) {
	t.Helper()
	eventually(t, 2*time.Minute, fmt.Sprintf("commit %s is reported as %s %q in %s", commit[:8], state, says, where), func(ctx context.Context) error {
		list, err := f.statuses(ctx, fleet.NameOf(t), commit)
		list = slices.DeleteFunc(list, func(s commitStatus) bool { return !strings.HasPrefix(s.Context, where) })
		if err != nil || len(list) == 0 {
			return fmt.Errorf("no status yet: %w", err)
		}
		if matches := list[0].State == state || (state == "" && list[0].State != "pending"); !matches || !strings.Contains(list[0].Description, says) {
			return fmt.Errorf("the newest of %d is %+v", len(list), list[0])
		}
		return nil
	})
}

// began checks that a commit was pending before it ended, in each of its contexts, and
// that nothing was posted twice.
func (f *forge) began(t *testing.T, commit string) {
	t.Helper()
	list, err := f.statuses(t.Context(), fleet.NameOf(t), commit)
	if err != nil {
		t.Fatal(err)
	}
	byContext := map[string][]commitStatus{}
	for _, s := range list {
		byContext[s.Context] = append(byContext[s.Context], s)
	}
	if len(byContext) != 2 {
		t.Errorf("posted in %d contexts, want %s and %s: %+v", len(byContext), own, sum, list)
	}
	for _, list := range byContext {
		if first := list[len(list)-1]; first.State != "pending" {
			t.Errorf("the first status of %s is %+v, want pending", commit[:8], first)
		}
		for i := range list[1:] {
			if list[i].State == list[i+1].State && list[i].Description == list[i+1].Description {
				t.Errorf("posted twice: %+v", list[i])
			}
		}
	}
}

// TestForgeOutOfOrder keeps going while the forge is down, and reports when it
// is back.
func TestForgeOutOfOrder(t *testing.T) {
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	repo.write("app/web.yaml", fmt.Sprintf(byHandApp, namespace, "nginx:1.29"))
	first := repo.push("first")
	the.follow(t, repo.url, "interval: 1h", "")
	the.applied(t, namespace, first, time.Minute)
	repo.reported(t, first, "success")

	// The notes go to another server, which is out of order for a while.
	other, err := gitserver.Start(t.Context(), filepath.Join(the.Dir, "git"), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	other.OutOfOrder(true)
	the.Kubectl(t, "", "patch", "provider", "commits", "-n", namespace, "--type=merge",
		"-p", fmt.Sprintf(`{"spec":{"address":%q}}`, other.URL(fleet.NameOf(t))))
	repo.write("app/web.yaml", fmt.Sprintf(byHandApp, namespace, "nginx:1.30"))
	second := repo.push("second")
	the.Kubectl(t, "", "annotate", "gitrepository", "src", "-n", namespace, "--overwrite",
		"reconcile.fluxcd.io/requestedAt="+time.Now().Format(time.RFC3339Nano))
	the.applied(t, namespace, second, time.Minute)
	other.OutOfOrder(false)
	repo.reported(t, second, "success 3/3 clusters ready")
}
