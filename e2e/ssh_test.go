package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// sshServer is a real OpenSSH server that lets one key in.
type sshServer struct {
	address  string
	user     string
	dir      string
	identity string
}

// startSSH runs sshd on loopback for the time of the test.
func startSSH(t *testing.T) *sshServer {
	t.Helper()
	const sshd = "/usr/sbin/sshd"
	if _, err := os.Stat(sshd); err != nil {
		t.Skip("there is no sshd: install openssh-server (make test does)")
	}
	who, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if who.Uid == "0" {
		// Where sshd separates its privileges; a service would have made it.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	port, err := localfleet.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &sshServer{address: fmt.Sprintf("127.0.0.1:%d", port), user: who.Username, dir: t.TempDir()}
	s.keygen(t, "host")
	s.keygen(t, "client")
	s.identity = s.read(t, "client")
	s.write(t, "authorized_keys", s.read(t, "client.pub"))
	s.write(t, "sshd_config", strings.Join([]string{
		"ListenAddress " + s.address, "HostKey " + filepath.Join(s.dir, "host"), "PidFile none",
		"AuthorizedKeysFile " + filepath.Join(s.dir, "authorized_keys"), "StrictModes no", "UsePAM no",
		"PasswordAuthentication no", "PermitRootLogin prohibit-password", "",
	}, "\n"))
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), sshd, "-D", "-e", "-f", filepath.Join(s.dir, "sshd_config"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(t, time.Minute, "sshd listens", func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	return s
}

func (s *sshServer) keygen(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join(s.dir, name)
	_ = os.Remove(path)
	out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path).CombinedOutput()
	if err != nil {
		t.Fatalf("make the key %s: %v\n%s", name, err, out)
	}
}

func (s *sshServer) read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func (s *sshServer) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// knownHosts is the line that vouches for the server, with the named public key.
func (s *sshServer) knownHosts(t *testing.T, key string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("[%s]:%s %s", host, port, s.read(t, key))
}

// secret is the Secret that a GitRepository uses, with the named host key.
func (s *sshServer) secret(t *testing.T, namespace, hostKey string) string {
	t.Helper()
	indent := func(text string) string { return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") }
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: ssh, namespace: %s}\nstringData:\n  identity: |\n%s\n  known_hosts: |\n%s\n",
		namespace, indent(s.identity), indent(s.knownHosts(t, hostKey)))
}

// TestSSH reads a repository over SSH, and refuses a server whose key is not
// the known one.
func TestSSH(t *testing.T) {
	server := startSSH(t)
	namespace := fleet.NameOf(t)
	bare := filepath.Join(server.dir, "fleet.git")
	if _, err := gitserver.Git(t.Context(), "", "init", "--quiet", "--bare", "--initial-branch=main", bare); err != nil {
		t.Fatal(err)
	}
	repo := &repository{t: t, url: fmt.Sprintf("ssh://%s@%s%s", server.user, server.address, bare), tree: t.TempDir()}
	repo.git("init", "--quiet", "--initial-branch=main")
	repo.git("remote", "add", "origin", bare)
	repo.write("app/web.yaml", fmt.Sprintf(byHandApp, namespace, "nginx:1.29"))
	first := repo.push("first")

	the.Kubectl(t, "", "create", "namespace", namespace)
	the.Apply(t, server.secret(t, namespace, "client.pub"))
	the.follow(t, repo.url, "secretRef: {name: ssh}", "")
	message := the.refused(t, "GitRepository", namespace, "HostKeyNotTrusted")
	if !strings.Contains(message, "known_hosts") {
		t.Errorf("a server with another key is refused without naming known_hosts: %s", message)
	}

	the.Apply(t, server.secret(t, namespace, "host.pub"))
	the.applied(t, namespace, first, time.Minute)
}
