package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/sourceignore/gitignore"
)

// Selection is which files of a tree belong to an artifact.
type Selection struct {
	// Ignore has exclusions in .gitignore's format, which are added to those in
	// .sourceignore files; nil means none. If there are any of either, they
	// replace the default exclusions, apart from those of Git's own files.
	Ignore *string
	// Directories limits the artifact to these; empty means all.
	Directories []string
	// Additions are files of others that belong to the artifact wherever they are,
	// unless they are excluded as those of the tree.
	Additions []Addition
}

// Addition are files that come besides those of a tree.
type Addition struct {
	// Name is whose they are, for errors.
	Name string
	// Files are by their path from the root of the tree.
	Files Files
}

// Reads reports whether Collect may read a file: it is in one of the directories, or has exclusions.
func (s Selection) Reads(file string) bool {
	if len(s.Directories) == 0 || path.Base(file) == sourceignore.IgnoreFile {
		return true
	}
	return slices.ContainsFunc(s.Directories, func(directory string) bool {
		dir := path.Clean(strings.Trim(directory, "/"))
		return dir == "." || strings.HasPrefix(file, dir+"/")
	})
}

// Collect reads the selected regular files of a tree. Of links only the names are
// taken, and submodules are left out, as Flux does. Errors: ErrTooLarge; ErrPath if one of the Directories
// does not exist; ErrTwice if an addition has a path that something else has; ErrMalformed for names that no artifact may have.
func Collect(ctx context.Context, tree fs.FS, selection Selection, limits Limits) (Files, error) {
	c := collection{tree: tree, budget: budget{limits: limits.withDefaults()}, files: Files{}}
	roots, err := c.roots(selection.Directories)
	if err != nil {
		return nil, err
	}
	if err := c.walk(ctx, ".", c.loadIgnoreFile); err != nil {
		return nil, err
	}
	for _, addition := range selection.Additions {
		if err := c.loadIgnoreFiles(addition.Files); err != nil {
			return nil, err
		}
	}
	if c.matcher, err = c.rules(selection.Ignore); err != nil {
		return nil, err
	}
	for _, root := range roots {
		if err := c.walk(ctx, root, c.take); err != nil {
			return nil, err
		}
	}
	if err := c.add(selection.Additions); err != nil {
		return nil, err
	}
	if err := c.files.twins(); err != nil {
		return nil, fmt.Errorf("%w: rename one, or exclude it with spec.ignore or .sourceignore", err)
	}
	return c.files, nil
}

type collection struct {
	tree     fs.FS
	budget   budget
	visited  int
	links    int
	patterns []gitignore.Pattern // of .sourceignore files
	matcher  gitignore.Matcher
	files    Files
}

// roots returns the directories to walk, none of them below another.
func (c *collection) roots(directories []string) ([]string, error) {
	if len(directories) == 0 {
		return []string{"."}, nil
	}
	var out []string
	for _, directory := range directories {
		dir := path.Clean(strings.Trim(directory, "/"))
		info, err := fs.Stat(c.tree, dir)
		if err != nil || !info.IsDir() {
			return nil, fmt.Errorf("directory %q of spec.sparseCheckout: %w in the repository", directory, ErrPath)
		}
		out = append(out, dir)
	}
	slices.Sort(out)
	kept := out[:0]
	for _, dir := range out {
		if !slices.ContainsFunc(kept, func(k string) bool { return k == "." || k == dir || strings.HasPrefix(dir, k+"/") }) {
			kept = append(kept, dir)
		}
	}
	return kept, nil
}

// visitsPerFile bounds how many entries are visited for each file that an
// artifact may have.
const visitsPerFile = 50

func (c *collection) walk(ctx context.Context, root string, visit func(name string, d fs.DirEntry) error) error {
	return fs.WalkDir(c.tree, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read tree: %w", err)
		}
		if c.visited++; c.visited > visitsPerFile*c.budget.limits.Files {
			return fmt.Errorf("more than %d entries in the repository: %w", visitsPerFile*c.budget.limits.Files, ErrTooLarge)
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if !d.Type().IsRegular() && d.Type() != fs.ModeSymlink {
			return nil
		}
		return visit(name, d)
	})
}

const (
	// MaxIgnoreFile is how large a .sourceignore may be, in bytes.
	MaxIgnoreFile = 1 << 20
	// maxPatterns is how many exclusions there may be in total: each file is
	// matched against each of them, and many directories may have a .sourceignore.
	maxPatterns = 10_000
)

func (c *collection) loadIgnoreFile(name string, d fs.DirEntry) error {
	if path.Base(name) != sourceignore.IgnoreFile || !d.Type().IsRegular() {
		return nil
	}
	if info, err := d.Info(); err != nil || info.Size() > MaxIgnoreFile {
		return fmt.Errorf("%s: %w", name, errors.Join(ErrTooLarge, err))
	}
	text, err := fs.ReadFile(c.tree, name)
	if err != nil {
		return fmt.Errorf("read tree: %w", err)
	}
	return c.excludeBelow(path.Dir(name), text)
}

// excludeBelow adds the exclusions of the .sourceignore of a directory.
func (c *collection) excludeBelow(dir string, text []byte) error {
	var domain []string
	if dir != "." {
		domain = strings.Split(dir, "/")
	}
	return c.exclude(bytes.NewReader(text), domain)
}

// loadIgnoreFiles adds the exclusions of an addition's .sourceignore files.
func (c *collection) loadIgnoreFiles(files Files) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Base(name) != sourceignore.IgnoreFile {
			continue
		}
		if len(files[name].Data) > MaxIgnoreFile {
			return fmt.Errorf("%s: %w", name, ErrTooLarge)
		}
		if err := c.excludeBelow(path.Dir(name), files[name].Data); err != nil {
			return err
		}
	}
	return nil
}

func (c *collection) exclude(text io.Reader, domain []string) error {
	if c.patterns = append(c.patterns, sourceignore.ReadPatterns(text, domain)...); len(c.patterns) > maxPatterns {
		return fmt.Errorf("more than %d exclusions in spec.ignore and .sourceignore: %w", maxPatterns, ErrTooLarge)
	}
	return nil
}

// rules returns the exclusions in the order in which the last match wins.
func (c *collection) rules(ignore *string) (gitignore.Matcher, error) {
	if ignore != nil {
		if err := c.exclude(strings.NewReader(*ignore), nil); err != nil {
			return nil, err
		}
	}
	if len(c.patterns) == 0 {
		return sourceignore.NewDefaultMatcher(nil, nil), nil
	}
	return sourceignore.NewMatcher(append(sourceignore.VCSPatterns(nil), c.patterns...)), nil
}

func (c *collection) take(name string, d fs.DirEntry) error {
	if c.matcher.Match(strings.Split(name, "/"), false) {
		return nil
	}
	if _, err := entryName(name); err != nil {
		return err
	}
	if d.Type() == fs.ModeSymlink {
		if c.links++; c.links <= mostLinks {
			c.files[name] = File{Link: true}
		}
		return nil
	}
	info, err := d.Info()
	if err != nil {
		return fmt.Errorf("read tree: %w", err)
	}
	if err := c.budget.add(info.Size()); err != nil {
		return err
	}
	data, err := fs.ReadFile(c.tree, name)
	if err != nil {
		return fmt.Errorf("read tree: %w", err)
	}
	c.files[name] = File{Data: data, Executable: info.Mode()&0o100 != 0}
	return nil
}

// ofTree is whose the files of the tree are, for errors.
const ofTree = "the repository"

// add takes what is not excluded of additions.
func (c *collection) add(additions []Addition) error {
	if len(additions) == 0 {
		return nil
	}
	owners, folders := map[string]string{}, map[string]string{}
	own := func(name, owner string) {
		owners[name] = owner
		for dir := path.Dir(name); dir != "." && folders[dir] == ""; dir = path.Dir(dir) {
			folders[dir] = owner
		}
	}
	for name := range c.files {
		own(name, ofTree)
	}
	for _, addition := range additions {
		for _, name := range slices.Sorted(maps.Keys(addition.Files)) {
			file := addition.Files[name]
			if c.matcher.Match(strings.Split(name, "/"), false) {
				continue
			}
			if _, err := entryName(name); err != nil {
				return err
			}
			if at, owner := taken(name, owners, folders); owner != "" {
				return fmt.Errorf("%s is %w: %s and %s both have it", at, ErrTwice, owner, addition.Name)
			}
			if err := c.budget.add(int64(len(file.Data))); err != nil {
				return err
			}
			c.files[name] = file
			own(name, addition.Name)
		}
	}
	return nil
}

// taken returns the path that stands in the way of a file, and whose it is; empty
// for none.
func taken(name string, owners, folders map[string]string) (at, owner string) {
	if owner := folders[name]; owner != "" {
		return name, owner
	}
	for at := name; at != "."; at = path.Dir(at) {
		if owner := owners[at]; owner != "" {
			return at, owner
		}
	}
	return "", ""
}
