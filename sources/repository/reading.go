package repository

import (
	"context"
	"errors"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/fetching"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/git/objects"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reader reads commits of repositories that are not, or not yet, where their ref points, such as those of pull requests. What it
// reads is no artifact, and is stored nowhere.
type Reader struct{ of *Reconciler }

// keptForReaders is the folder, beside the store, of objects that were transferred for Readers: those of pull requests must not
// push out what the loop needs.
const keptForReaders = "git-unmerged"

// NewReader returns a Reader. It reads what is included from the store.
func NewReader(hub client.Client, store *artifact.Store, opts Options) *Reader {
	folder, full := artifact.Beside(store, keptForReaders)
	opts.Git.Kept = git.NewKept(git.KeptOptions{Clock: opts.Clock, Objects: objects.New(objects.Options{Dir: folder, DiskFull: full, Clock: opts.Clock})})
	return &Reader{New(hub, store, nil, opts)}
}

// Opened is a repository that is reached as its GitRepository says. It may be used from several goroutines.
type Opened struct {
	of *Reconciler
	s  *state
}

// Open finds out the credentials of a repository, and what it includes. What a commit itself could name elsewhere is not followed:
// a repository that asks for submodules or for files of Git LFS is refused. Errors have a class and a reason (package loop).
func (r *Reader) Open(ctx context.Context, object *sourcev1.GitRepository) (*Opened, error) {
	s := &state{object: object, interval: max(object.Spec.Interval.Duration, fetching.MinInterval)}
	if object.Spec.RecurseSubmodules || fromLFS(object) {
		return nil, loop.Stalled(fetching.ReasonUnsupported, errors.New("commits that are not merged are read without submodules and Git LFS, which the GitRepository asks for"))
	}
	if _, err := loop.Run(ctx, s, r.of.refuse, r.of.includes.find, r.of.connect); err != nil {
		return nil, err
	}
	return &Opened{r.of, s}, nil
}

// Resolve returns the commit that a ref points at. Errors: as git.Remote's.
func (o *Opened) Resolve(ctx context.Context, ref git.Ref) (git.Commit, error) {
	commit, err := o.s.remote.Resolve(ctx, ref)
	doubt(o.s, err)
	return commit, err
}

// MergeBase returns the latest commit that is in the history of two. Errors: as git.Remote's.
func (o *Opened) MergeBase(ctx context.Context, onto, branch git.Commit) (string, error) {
	return git.MergeBase(ctx, o.s.remote, onto, branch)
}

// Line returns the commits after an earlier one. Errors: as git.Line's.
func (o *Opened) Line(ctx context.Context, before string, now git.Commit) ([]string, error) {
	return git.Line(ctx, o.s.remote, before, now)
}

// Files returns the files of a commit that its repository's artifact would have. Errors: as git.Remote's, and those of package
// artifact.
func (o *Opened) Files(ctx context.Context, of git.Commit) (artifact.Files, error) {
	tree, err := o.s.take(ctx, of)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	own := *o.s // the phases of another commit note their faults in it
	files, _, err := o.of.collector.files(ctx, &own, tree, of)
	if err != nil {
		return nil, fmt.Errorf("read the files: %w", err)
	}
	return files, nil
}
