package planning

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/flotilla-io/flotilla/cmd/flotilla/planning/refs"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/trailer"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

// side is what there is before a change, or after it.
type side struct {
	// name is how people call it.
	name string
	// paths are files and folders that are yet to be read; none where files were read.
	paths []string
	files artifact.Files
	// revision is that of a commit, and allows what its message allows to be deleted; empty for files of no commit.
	revision, allows string
}

// sides are both. The one before has neither files nor paths where that is what the control plane holds.
type sides struct{ base, head side }

func (s side) empty() bool { return s.files == nil && len(s.paths) == 0 }

// sides reads what the call names. Folders are read as a source takes them if selection is given, and later otherwise.
func (f *planFlags) sides(ctx context.Context, selection *artifact.Selection) (sides, error) {
	out := sides{head: side{name: strings.Join(f.files, ", "), paths: f.files}, base: side{name: strings.Join(f.base, ", "), paths: f.base}}
	base, head := "", f.head
	switch {
	case head != "" && len(f.base) > 0:
		base = f.base[0]
	case head == "" && len(f.base) == 1 && f.base[0] != "-" && absent(f.base[0]):
		base = f.base[0]
	}
	if base != "" || head != "" {
		if err := f.commits(ctx, &out, base, head, selection); err != nil {
			return out, err
		}
	}
	if selection == nil {
		return out, nil
	}
	for _, s := range []*side{&out.base, &out.head} {
		if s.empty() || s.files != nil {
			continue
		}
		if len(s.paths) != 1 || !isFolder(s.paths[0]) {
			if len(s.paths) == 1 && absent(s.paths[0]) {
				return out, nothingAt(s.paths[0])
			}
			return out, command.Usage(fmt.Errorf("%s is not one folder: with --source and --kustomization, name the root of the repository", s.name))
		}
		files, err := collect(ctx, s.paths[0], *selection)
		if err != nil {
			return out, err
		}
		s.paths, s.files = nil, files
	}
	return out, nil
}

// commits reads the sides that are revisions of a repository.
func (f *planFlags) commits(ctx context.Context, out *sides, base, head string, selection *artifact.Selection) error {
	dir := f.folder()
	repository, err := refs.Open(ctx, dir)
	if errors.Is(err, refs.ErrNone) && head == "" {
		return nothingAt(base)
	}
	if err != nil {
		return command.Usage(err)
	}
	var commits [2]refs.Commit
	for i, name := range []string{base, head} {
		if name == "" {
			continue
		}
		if commits[i], err = repository.Commit(ctx, name); err != nil {
			if i == 0 && head == "" {
				err = fmt.Errorf("there is no file or folder %s, and %w", name, err)
			}
			return command.Usage(err)
		}
	}
	if f.forked {
		if commits[0], err = repository.Base(ctx, commits[0], commits[1]); err != nil {
			return command.Usage(err)
		}
	}
	for i, s := range []*side{&out.base, &out.head} {
		if commits[i].Revision == "" {
			continue
		}
		if selection == nil {
			selection = &artifact.Selection{}
		}
		if s.files, err = taken(ctx, repository, commits[i], *selection); err != nil {
			return err
		}
		s.name, s.paths, s.revision, s.allows = commits[i].Revision, nil, commits[i].Revision, trailer.Allowed(commits[i].Message)
	}
	return nil
}

// taken returns the files of a commit as a source takes them.
func taken(ctx context.Context, repository refs.Repository, of refs.Commit, selection artifact.Selection) (artifact.Files, error) {
	tree, err := repository.Files(ctx, of)
	if err != nil {
		return nil, err
	}
	files, err := artifact.Collect(ctx, tree, selection, artifact.Limits{})
	if err := errors.Join(err, tree.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", of.Revision, err)
	}
	return files, nil
}

// folder is where the repository is.
func (f *planFlags) folder() string {
	if len(f.files) == 0 || f.files[0] == "-" {
		return "."
	}
	if !isFolder(f.files[0]) {
		return filepath.Dir(f.files[0])
	}
	return f.files[0]
}

func absent(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// span returns the revisions of an argument such as "main..change"; forked says that it has three dots, which stand for
// what the second one has changed since it left the first.
func span(arg string) (base, head string, forked, is bool) {
	if !absent(arg) {
		return "", "", false, false
	}
	if base, head, is = strings.Cut(arg, "..."); is {
		forked = true
	} else if base, head, is = strings.Cut(arg, ".."); !is {
		return "", "", false, false
	}
	if base == "" {
		base = "HEAD"
	}
	if head == "" {
		head = "HEAD"
	}
	return base, head, forked, !strings.HasPrefix(head, "/") && !strings.HasSuffix(base, "/")
}
