package gitserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// Server is a running Git server.
type Server struct {
	root     string
	listener net.Listener
	http     *http.Server
	requests atomic.Int64
	refuse   atomic.Bool
}

// Start serves the repositories below root on the given loopback address;
// port 0 takes a free one. The caller stops it with Close.
func Start(ctx context.Context, root, address string) (*Server, error) {
	backend, err := backendPath(ctx)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for Git on %s: %w", address, err)
	}
	s := &Server{root: root, listener: listener}
	handler := &cgi.Handler{
		Path:   backend,
		Stderr: io.Discard, // git reports its progress where that is a terminal, in the midst of what we say
		Env:    []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=demo", "HOME=" + root},
	}
	s.http = &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.requests.Add(1)
			if s.refuse.Load() {
				http.Error(w, "out of order", http.StatusServiceUnavailable)
				return
			}
			if err := unchunk(r); err != nil {
				http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
				return
			}
			handler.ServeHTTP(w, r)
		}),
	}
	go func() { _ = s.http.Serve(listener) }()
	return s, nil
}

// URL is the clone URL of the repository with the given name.
func (s *Server) URL(name string) string {
	return fmt.Sprintf("http://%s/%s.git", s.listener.Addr(), name)
}

// Requests is how many requests were answered since the start.
func (s *Server) Requests() int64 { return s.requests.Load() }

// OutOfOrder makes the server answer 503 to everything, or serve again.
func (s *Server) OutOfOrder(refuse bool) { s.refuse.Store(refuse) }

// Close stops the server at once.
func (s *Server) Close() error {
	if err := s.http.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("stop the Git server: %w", err)
	}
	return nil
}

// Create makes an empty bare repository that accepts pushes, with main as its
// branch. One that is there already is kept.
func (s *Server) Create(ctx context.Context, name string) error {
	dir := filepath.Join(s.root, name+".git")
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil {
		return nil
	}
	if _, err := Git(ctx, s.root, "init", "--quiet", "--bare", "--initial-branch=main", dir); err != nil {
		return err
	}
	_, err := Git(ctx, dir, "config", "http.receivepack", "true")
	return err
}

// Alias serves a repository under another name as well.
func (s *Server) Alias(name, of string) error {
	if err := os.Symlink(of+".git", filepath.Join(s.root, name+".git")); err != nil {
		return fmt.Errorf("give the repository %s another name: %w", of, err)
	}
	return nil
}

// Git runs the git program in dir, apart from the caller's own configuration,
// and returns what it prints. An error carries git's output.
func Git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Flotilla Demo", "GIT_AUTHOR_EMAIL=demo@localhost",
		"GIT_COMMITTER_NAME=Flotilla Demo", "GIT_COMMITTER_EMAIL=demo@localhost",
	)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return strings.TrimSpace(string(out)), nil
}

// maxPush bounds a push whose length is not announced.
const maxPush = 256 << 20

// unchunk reads a body of unknown length, because CGI wants to know it. Git
// sends larger pushes that way.
func unchunk(r *http.Request) error {
	if r.ContentLength >= 0 {
		return nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxPush))
	if err != nil {
		return fmt.Errorf("read the push: %w", err)
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	return nil
}

func backendPath(ctx context.Context) (string, error) {
	dir, err := Git(ctx, "", "--exec-path")
	if err != nil {
		return "", fmt.Errorf("a Git server needs the git program: %w", err)
	}
	path := filepath.Join(dir, "git-http-backend")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("this git has no http-backend: %w", err)
	}
	return path, nil
}
