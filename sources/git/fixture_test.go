package git_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/sources/git"
)

// fixture is a real repository, served over HTTP, and a clone to change it with.
type fixture struct {
	t      *testing.T
	server *gitserver.Server
	root   string // the folder of the served repositories
	clone  string
	url    string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, root: t.TempDir(), clone: filepath.Join(t.TempDir(), "clone")}
	var err error
	if f.server, err = gitserver.Start(t.Context(), f.root, "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.server.Close() })
	if err := f.server.Create(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	f.url = f.server.URL("app")
	if _, err := gitserver.Git(t.Context(), f.root, "clone", "--quiet", f.url, f.clone); err != nil {
		t.Fatal(err)
	}
	f.git("checkout", "--quiet", "-b", "main")
	return f
}

func (f *fixture) git(args ...string) string {
	f.t.Helper()
	out, err := gitserver.Git(f.t.Context(), f.clone, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// commit writes files, commits and pushes them, and returns the commit's hash.
func (f *fixture) commit(message string, files map[string]string) string {
	f.t.Helper()
	for name, content := range files {
		path := filepath.Join(f.clone, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			f.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			f.t.Fatal(err)
		}
	}
	f.git("add", "-A")
	f.git("commit", "--quiet", "--allow-empty", "-m", message)
	f.git("push", "--quiet", "origin", "HEAD")
	return f.git("rev-parse", "HEAD")
}

// loopback is the network of the servers of these tests.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// remote returns a Remote for which loopback addresses are allowed.
func (f *fixture) remote(rawURL string, cred git.Credentials, opts git.Options) *git.Remote {
	f.t.Helper()
	opts.TempDir = f.t.TempDir()
	if opts.Egress.Networks == nil {
		opts.Egress.Networks = loopback
	}
	r, err := git.NewRemote(rawURL, cred, opts)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// front returns a reverse proxy to the fixture's server.
func (f *fixture) front() http.Handler {
	to, err := url.Parse(f.url)
	if err != nil {
		f.t.Fatal(err)
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
	}}
}

// sshServer is an SSH server in this process that runs git's own services.
type sshServer struct {
	t        *testing.T
	root     string
	listener net.Listener
	config   atomic.Pointer[ssh.ServerConfig]
	client   ssh.PublicKey
}

func newSigner(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block)
}

func newSSHServer(t *testing.T, root string, host ssh.Signer, client ssh.PublicKey) *sshServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s := &sshServer{t: t, root: root, listener: listener, client: client}
	s.rotate(host)
	go s.serve()
	return s
}

// rotate makes the server show another host key from the next connection on.
func (s *sshServer) rotate(host ssh.Signer) {
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(s.client.Marshal()) {
			return nil, fmt.Errorf("unknown key")
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	s.config.Store(config)
}

func (s *sshServer) url(name string) string {
	return fmt.Sprintf("ssh://git@%s/%s.git", s.listener.Addr(), name)
}

// knownHosts returns the known_hosts line that trusts a key for this server.
func (s *sshServer) knownHosts(key ssh.PublicKey) []byte {
	return []byte(knownhosts.Line([]string{s.listener.Addr().String()}, key) + "\n")
}

func (s *sshServer) serve() {
	for {
		raw, err := s.listener.Accept()
		if err != nil {
			return
		}
		go s.converse(raw, s.config.Load())
	}
}

func (s *sshServer) converse(raw net.Conn, config *ssh.ServerConfig) {
	defer raw.Close()
	conn, channels, requests, err := ssh.NewServerConn(raw, config)
	if err != nil {
		return
	}
	defer conn.Close()
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		go s.session(channel, requests)
	}
}

func (s *sshServer) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	for request := range requests {
		if request.Type != "exec" {
			_ = request.Reply(false, nil)
			continue
		}
		_ = request.Reply(true, nil)
		var exec struct{ Command string }
		if ssh.Unmarshal(request.Payload, &exec) != nil {
			return
		}
		status := struct{ Code uint32 }{s.run(exec.Command, channel)}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
		return
	}
}

func (s *sshServer) run(command string, channel ssh.Channel) uint32 {
	service, path, _ := strings.Cut(command, " ")
	cmd := exec.Command("git", strings.TrimPrefix(service, "git-"), filepath.Join(s.root, strings.Trim(path, "'")))
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return 1
	}
	go func() {
		defer in.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := channel.Read(buf)
			if n > 0 {
				if _, err := in.Write(buf[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	if cmd.Wait() != nil {
		return 1
	}
	return 0
}

// someone is the author of notes in tests.
var someone = git.Signature{Name: "Flotilla", Email: "flotilla@localhost", When: time.Unix(1_700_000_000, 0).UTC()}

// fastImport runs git fast-import in the clone.
func (f *fixture) fastImport(stream string) {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), "git", "fast-import", "--quiet", "--force")
	cmd.Dir = f.clone
	cmd.Stdin = strings.NewReader(stream)
	if out, err := cmd.CombinedOutput(); err != nil {
		f.t.Fatalf("git fast-import: %v %s", err, out)
	}
}
