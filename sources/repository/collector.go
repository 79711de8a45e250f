package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/lfs"
	"github.com/flotilla-io/flotilla/sources/submodule"
)

// collector returns the files that belong to artifacts.
type collector struct {
	includes includer
	limits   artifact.Limits
}

// files returns the files of a commit that belong to the repository's artifact,
// with those of its submodules, which are returned as well, and of what it includes.
func (c collector) files(ctx context.Context, s *state, tree *git.Tree, of git.Commit) (artifact.Files, []submodule.Module, error) {
	whole := &submodule.Whole{Tree: tree}
	if s.object.Spec.RecurseSubmodules {
		var err error
		if whole, err = submodule.Fetch(ctx, tree, s.from, s.object.Spec.SparseCheckout); err != nil {
			return nil, nil, fmt.Errorf("submodules of %s: %w", of.Revision().Short(), err)
		}
		defer whole.Close()
	}
	files, err := c.selected(ctx, s, whole, of)
	return files, whole.Modules, err
}

// selected returns the files of a commit and of its submodules that belong to the repository's artifact, with those of what it includes.
func (c collector) selected(ctx context.Context, s *state, whole *submodule.Whole, of git.Commit) (artifact.Files, error) {
	included, err := c.includes.read(ctx, s)
	if err != nil {
		return nil, err
	}
	files, err := c.collect(ctx, s, whole.Tree, included)
	switch {
	case errors.Is(err, artifact.ErrTwice):
		s.fails = sourcev1.IncludeUnavailableCondition
		return nil, loop.Waiting(reasonCopyFailure, s.interval, fmt.Errorf("files of %s: %w; change toPath in spec.include, or remove one", of.Revision().Short(), err))
	case err != nil:
		return nil, fmt.Errorf("files of %s: %w", of.Revision().Short(), err)
	case !fromLFS(s.object):
		return files, nil
	}
	own := func(name string) bool {
		for _, addition := range included {
			if _, theirs := addition.Files[name]; theirs {
				return false
			}
		}
		return !whole.Within(name)
	}
	if err := c.fill(ctx, s, files, own); err != nil {
		return nil, fmt.Errorf("Git LFS files of %s: %w", of.Revision().Short(), err)
	}
	return files, nil
}

// collect returns the selected files of a tree.
func (c collector) collect(ctx context.Context, s *state, tree fs.FS, included []artifact.Addition) (artifact.Files, error) {
	ctx, leave, err := places.Compute(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	selection := s.selection()
	selection.Additions = included
	return artifact.Collect(ctx, tree, selection, c.limits)
}

// fromLFS reports whether the content of files that Git LFS keeps is asked for.
func fromLFS(object *sourcev1.GitRepository) bool {
	return object.Annotations[gitopsv1alpha1.LFSAnnotation] == "true"
}

// fill replaces the pointers of the commit's own files by what they point at.
// Those of submodules and of what is included are for other servers.
func (c collector) fill(ctx context.Context, s *state, files artifact.Files, own func(name string) bool) error {
	pointers, sizes := map[string]lfs.Pointer{}, make([]int64, 0, len(files))
	var all []lfs.Pointer
	for name, file := range files {
		size := int64(len(file.Data))
		if pointer, is := lfs.Parse(file.Data); is && own(name) {
			pointers[name], size = pointer, pointer.Size
			all = append(all, pointer)
		}
		if !file.Link {
			sizes = append(sizes, size)
		}
	}
	if len(pointers) == 0 {
		return nil
	}
	if err := c.limits.Check(sizes); err != nil {
		return err
	}
	from := lfs.Source{URL: s.from.URL, Credentials: s.from.Credentials, Egress: s.from.Options.Egress, Proxy: s.from.Options.Proxy, Timeout: s.from.Options.Timeout}
	content, err := lfs.Fetch(ctx, from, all)
	if err != nil {
		return err
	}
	for name, pointer := range pointers {
		files[name] = artifact.File{Data: content[pointer.OID], Executable: files[name].Executable}
	}
	return nil
}
