// Package transfers counts the bytes that a large Git repository costs: looked at, fetched, and fetched again after one file has changed.
//
// In go how large the repository is; out come the rows of a report. It is served by git's own http-backend, with filters and
// without, and bytes are counted at the connections, in both directions. No control plane takes part.
package transfers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/git/objects"
)

const (
	name   = "large"
	branch = "main"
	files  = 1000
	refs   = 100_000
	// blob is how large one version of the file is that makes up the history, in bytes.
	blob    = 1 << 20
	changes = 5
	longest = 2 * time.Minute
)

// Measure makes a repository with a history of so many MiB, and counts.
func Measure(ctx context.Context, history int, r *results.Report) (err error) {
	dir, err := os.MkdirTemp("", "flotilla-bench-")
	if err != nil {
		return fmt.Errorf("make a folder for the repository: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server, err := gitserver.Start(ctx, dir, "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	l := &large{dir: dir, url: server.URL(name), noise: rand.NewChaCha8([32]byte{})}
	began := time.Now()
	if err := l.create(ctx, server, history); err != nil {
		return err
	}
	r.Note("sources", fmt.Sprintf("a repository of %d MiB and %d refs: made in", history, refs), time.Since(began).Seconds(), "s")
	for _, filters := range []bool{true, false} {
		if err := l.measure(ctx, filters, r); err != nil {
			return err
		}
	}
	return nil
}

// large is the repository.
type large struct {
	dir, url string
	noise    *rand.ChaCha8
	bytes    atomic.Int64
	version  int
}

func (l *large) repository() string { return filepath.Join(l.dir, name+".git") }

// create makes the history by one stream, and the refs by one file, as git pack-refs would.
func (l *large) create(ctx context.Context, server *gitserver.Server, history int) error {
	if err := server.Create(ctx, name); err != nil {
		return err
	}
	err := l.load(ctx, func(to io.Writer) {
		l.begin(to, false)
		for n := range files {
			fmt.Fprintf(to, "M 100644 inline apps/%02d/%04d.yaml\n", n%20, n)
			l.data(to, 1<<10)
		}
		for range history {
			l.begin(to, false)
			fmt.Fprint(to, "M 100644 inline large.bin\n")
			l.data(to, blob)
		}
		l.begin(to, false)
		fmt.Fprint(to, "D large.bin\n")
	})
	if err != nil {
		return err
	}
	tip, err := gitserver.Git(ctx, l.repository(), "rev-parse", branch)
	if err != nil {
		return err
	}
	var packed strings.Builder
	packed.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for n := range refs {
		fmt.Fprintf(&packed, "%s refs/pull/%06d/head\n", tip, n)
	}
	if err := os.WriteFile(filepath.Join(l.repository(), "packed-refs"), []byte(packed.String()), 0o600); err != nil {
		return fmt.Errorf("write the refs: %w", err)
	}
	return nil
}

// load has git import what write writes.
func (l *large) load(ctx context.Context, write func(io.Writer)) error {
	cmd := exec.CommandContext(ctx, "git", "fast-import", "--quiet", "--force", "--depth=0")
	cmd.Dir = l.repository()
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("import the history: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("import the history: %w", err)
	}
	out := bufio.NewWriterSize(in, 1<<20)
	write(out)
	if err := errors.Join(out.Flush(), in.Close(), cmd.Wait()); err != nil {
		return fmt.Errorf("import the history: %w", err)
	}
	return nil
}

// begin begins a commit. It follows the one before it in the same stream; the first of a stream follows what is there, if resumes.
func (l *large) begin(to io.Writer, resumes bool) {
	fmt.Fprintf(to, "commit refs/heads/%s\ncommitter Bench <bench@localhost> %d +0000\ndata 0\n", branch, 1_700_000_000+l.version)
	if resumes {
		fmt.Fprintf(to, "from refs/heads/%s^0\n", branch)
	}
	l.version++
}

// data writes content that does not compress.
func (l *large) data(to io.Writer, size int) {
	content := make([]byte, size)
	_, _ = l.noise.Read(content)
	fmt.Fprintf(to, "data %d\n", size)
	_, _ = to.Write(append(content, '\n'))
}

// measure counts what the repository costs one who has never seen it, and then at each change.
func (l *large) measure(ctx context.Context, filters bool, r *results.Report) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if _, err := gitserver.Git(ctx, l.repository(), "config", "uploadpack.allowFilter", fmt.Sprint(filters)); err != nil {
		return err
	}
	kept, err := os.MkdirTemp(l.dir, "kept-")
	if err != nil {
		return fmt.Errorf("make a folder for objects: %w", err)
	}
	who := git.NewKept(git.KeptOptions{Objects: objects.New(objects.Options{Dir: kept})})
	first, err := l.cost(func() error { return l.fetch(ctx, who) })
	if err != nil {
		return err
	}
	poll, err := l.cost(func() error { _, _, err := l.poll(ctx, who); return err })
	if err != nil {
		return err
	}
	var change float64
	for range changes {
		err := l.load(ctx, func(to io.Writer) {
			l.begin(to, true)
			fmt.Fprint(to, "M 100644 inline apps/07/0007.yaml\n")
			l.data(to, 1<<10)
		})
		if err != nil {
			return err
		}
		took, err := l.cost(func() error { return l.fetch(ctx, who) })
		if err != nil {
			return err
		}
		change = max(change, took)
	}
	by := map[bool]string{true: "a server with filters", false: "a server without filters"}[filters]
	r.Note("sources", by+": the first fetch of 1,000 files", first, "KiB")
	r.AtMost("sources", by+": an unchanged poll, of 100,000 refs", poll, "KiB", 4)
	r.AtMost("sources", by+": one changed file of 1,000, with its poll", change, "KiB", 100)
	return nil
}

// cost returns how many KiB go over the wire while do runs.
func (l *large) cost(do func() error) (float64, error) {
	before := l.bytes.Load()
	err := do()
	return float64(l.bytes.Load()-before) / (1 << 10), err
}

func (l *large) poll(ctx context.Context, who *git.Kept) (*git.Remote, git.Commit, error) {
	dialer := egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Dial: l.dial}
	remote, err := git.NewRemote(l.url, git.Credentials{}, git.Options{Kept: who, Egress: dialer, TempDir: l.dir, Timeout: longest})
	if err != nil {
		return nil, git.Commit{}, err
	}
	commit, err := remote.Resolve(ctx, git.Ref{Branch: branch})
	return remote, commit, err
}

func (l *large) fetch(ctx context.Context, who *git.Kept) error {
	remote, commit, err := l.poll(ctx, who)
	if err != nil {
		return err
	}
	tree, err := remote.Fetch(ctx, commit)
	if err != nil {
		return err
	}
	return tree.Close()
}

func (l *large) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	return counted{conn, &l.bytes}, err
}

// counted counts the bytes of a connection.
type counted struct {
	net.Conn
	bytes *atomic.Int64
}

// Read implements net.Conn.
func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// Write implements net.Conn.
func (c counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}
