// Package refs reads commits of a local Git repository, as a source fetches them.
//
// In go a folder of a clone and the names of revisions; out come commits and their files. It runs git, which fetches
// nothing, runs no hook, and touches neither the worktree nor the index.
package refs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Repository is a clone. Use Open.
type Repository struct{ dir string }

// Errors that callers branch on.
var (
	// ErrNone means that a folder is in no repository.
	ErrNone = errors.New("is in no Git repository")
	// ErrUnknown means that a repository has no such revision.
	ErrUnknown = errors.New("is no revision of the repository")
)

// Open returns the repository that a folder is in.
func Open(ctx context.Context, dir string) (Repository, error) {
	r := Repository{dir: dir}
	if _, err := r.git(ctx, "rev-parse", "--git-dir"); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return r, errors.New("git is not installed, which reads revisions: compare folders instead")
		}
		if !strings.Contains(err.Error(), "not a git repository") {
			return r, fmt.Errorf("%s: %w", dir, err)
		}
		return r, fmt.Errorf("%s %w", dir, ErrNone)
	}
	return r, nil
}

// Commit is what a revision names.
type Commit struct {
	// Revision is as sources write it: "main@sha1:9f2c…".
	Revision string
	// Message is the commit's.
	Message string

	hash string
}

// Commit returns the commit of a revision, such as a branch, a tag or a hash. Errors: ErrUnknown.
func (r Repository) Commit(ctx context.Context, revision string) (Commit, error) {
	hash, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return Commit{}, fmt.Errorf("%q %w: git fetch brings those of others", revision, ErrUnknown)
	}
	return r.of(ctx, hash, revision)
}

// Base returns the latest commit that is in the history of two.
func (r Repository) Base(ctx context.Context, a, b Commit) (Commit, error) {
	hash, err := r.git(ctx, "merge-base", a.hash, b.hash)
	if err != nil {
		return Commit{}, fmt.Errorf("%s and %s have no commit in common in this clone: fetch more of their history", a.Revision, b.Revision)
	}
	return r.of(ctx, hash, "")
}

func (r Repository) of(ctx context.Context, hash, name string) (Commit, error) {
	message, err := r.git(ctx, "log", "-1", "--no-show-signature", "--format=%B", hash)
	if err != nil {
		return Commit{}, err
	}
	kind := "sha1:"
	if len(hash) > 40 {
		kind = "sha256:"
	}
	out := Commit{Revision: kind + hash, Message: message, hash: hash}
	if name != "" && !strings.HasPrefix(hash, name) {
		out.Revision = name + "@" + out.Revision
	}
	return out, nil
}

// Files returns the files that a commit has in the folder of the repository. Close what is returned.
func (r Repository) Files(ctx context.Context, of Commit) (*Files, error) {
	prefix, err := r.git(ctx, "rev-parse", "--show-prefix")
	if err != nil {
		return nil, err
	}
	list, err := r.raw(ctx, "ls-tree", "-r", "-t", "-z", "-l", "--full-tree", of.hash+":"+strings.TrimSuffix(prefix, "/"))
	if err != nil {
		return nil, fmt.Errorf("list the files of %s in ./%s: %w", of.Revision, prefix, err)
	}
	out := &Files{folders: map[string][]entry{".": nil}, entries: map[string]entry{}}
	for line := range bytes.SplitSeq(list, []byte{0}) {
		if len(line) == 0 {
			continue
		}
		e, name, err := entryOf(string(line))
		if err != nil {
			return nil, err
		}
		out.entries[name] = e
		out.folders[path.Dir(name)] = append(out.folders[path.Dir(name)], e)
	}
	for _, all := range out.folders {
		slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	}
	return out, out.start(r.command(ctx, "cat-file", "--batch"))
}

// entryOf reads a line of git ls-tree: "100644 blob HASH SIZE", a tab, and the path.
func entryOf(line string) (entry, string, error) {
	facts, name, _ := strings.Cut(line, "\t")
	fields := strings.Fields(facts)
	if len(fields) != 4 || !fs.ValidPath(name) {
		return entry{}, "", fmt.Errorf("git lists %q, which is no file", line)
	}
	e := entry{name: path.Base(name), hash: fields[2]}
	e.size, _ = strconv.ParseInt(fields[3], 10, 64) // folders have none
	switch fields[0] {
	case "040000":
		e.mode = fs.ModeDir | 0o755
	case "120000":
		e.mode = fs.ModeSymlink | 0o777
	case "160000":
		e.mode = fs.ModeIrregular
	case "100755":
		e.mode = 0o755
	default:
		e.mode = 0o644
	}
	return e, name, nil
}

func (r Repository) git(ctx context.Context, args ...string) (string, error) {
	out, err := r.raw(ctx, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

func (r Repository) raw(ctx context.Context, args ...string) ([]byte, error) {
	out, err := r.command(ctx, args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		line, _, _ := strings.Cut(strings.TrimSpace(string(exit.Stderr)), "\n")
		err = fmt.Errorf("git %s: %s: %w", args[0], line, err)
	}
	return out, err
}

// command returns git without network access, prompts or locks, and without what a clone's settings would run.
func (r Repository) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_REPLACE_OBJECTS=1", "LC_ALL=C")
	return cmd
}

// entry is a file, a folder, a link or a submodule.
type entry struct {
	name, hash string
	size       int64
	mode       fs.FileMode
}

// An entry is its own fs.DirEntry and fs.FileInfo.
func (e entry) Name() string               { return e.name }
func (e entry) IsDir() bool                { return e.mode.IsDir() }
func (e entry) Type() fs.FileMode          { return e.mode.Type() }
func (e entry) Info() (fs.FileInfo, error) { return e, nil }
func (e entry) Size() int64                { return e.size }
func (e entry) Mode() fs.FileMode          { return e.mode }
func (e entry) ModTime() time.Time         { return time.Time{} }
func (e entry) Sys() any                   { return nil }

// Files are the files of a commit. They must not be used from several goroutines.
type Files struct {
	entries map[string]entry
	folders map[string][]entry
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

var (
	_ fs.ReadDirFS  = (*Files)(nil)
	_ fs.ReadFileFS = (*Files)(nil)
	_ fs.StatFS     = (*Files)(nil)
)

func (f *Files) start(cmd *exec.Cmd) error {
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	f.cmd, f.in, f.out = cmd, in, bufio.NewReader(out)
	return cmd.Start()
}

// Close ends the git that reads the files.
func (f *Files) Close() error {
	return errors.Join(f.in.Close(), f.cmd.Wait())
}

// Open implements fs.FS. Files are read by ReadFile alone.
func (f *Files) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

// Stat implements fs.StatFS.
func (f *Files) Stat(name string) (fs.FileInfo, error) {
	if name == "." {
		return entry{name: ".", mode: fs.ModeDir | 0o755}, nil
	}
	e, there := f.entries[name]
	if !there {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return e, nil
}

// ReadDir implements fs.ReadDirFS.
func (f *Files) ReadDir(name string) ([]fs.DirEntry, error) {
	all, there := f.folders[name]
	if e, is := f.entries[name]; !there && !(is && e.IsDir()) {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	out := make([]fs.DirEntry, len(all))
	for i := range all {
		out[i] = all[i]
	}
	return out, nil
}

// mostBytes is how large a file may be.
const mostBytes = 256 << 20

// ReadFile implements fs.ReadFileFS.
func (f *Files) ReadFile(name string) ([]byte, error) {
	e, there := f.entries[name]
	switch {
	case !there:
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	case !e.mode.IsRegular():
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("not a regular file")}
	case e.size > mostBytes:
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("has more than %d MiB", mostBytes>>20)}
	}
	content, err := f.blob(e.hash)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return content, nil
}

// blob reads an object: git answers with "HASH blob SIZE", the content, and a line break.
func (f *Files) blob(hash string) ([]byte, error) {
	if _, err := io.WriteString(f.in, hash+"\n"); err != nil {
		return nil, err
	}
	head, err := f.out.ReadString('\n')
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(head)
	if len(fields) != 3 {
		return nil, errors.New("this clone does not have it: fetch it, as the clone is a partial one")
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || size > mostBytes {
		return nil, fmt.Errorf("git answers %q", strings.TrimSpace(head))
	}
	content := make([]byte, size+1)
	if _, err := io.ReadFull(f.out, content); err != nil {
		return nil, err
	}
	return content[:size], nil
}
