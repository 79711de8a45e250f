package submodule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/origin"
)

const (
	// mostDeep is how deep submodules may be within submodules.
	mostDeep = 3
	// mostNumber is how many submodules a commit may have, with those within them.
	mostNumber = 20
	// mostPack is how large the transfer of one may be, in bytes, and mostUnpacked
	// what it unpacks to.
	mostPack, mostUnpacked = 64 << 20, 256 << 20
	// mostEntries is how many entries of trees are looked at.
	mostEntries = 500_000
)

// Source is where a commit with submodules came from.
type Source struct {
	URL         string
	Credentials git.Credentials
	// Options are those of the repository; their Timeout bounds the fetch of all
	// submodules together.
	Options git.Options
}

// Whole is the tree of a commit with those of its submodules. It must not be used
// from several goroutines.
type Whole struct {
	// Tree has the files of all.
	Tree fs.FS
	// Modules are the submodules, each before those within it.
	Modules []Module
	trees   []*git.Tree
}

// Module is a submodule.
type Module struct {
	// Path is where its files are, from the root of the commit.
	Path string
	// URL is where it was fetched from, without credentials.
	URL string
	// Commit is its commit, in lower-case hex.
	Commit string
}

// Within reports whether a file is of a submodule.
func (w *Whole) Within(name string) bool {
	return slices.ContainsFunc(w.Modules, func(m Module) bool { return strings.HasPrefix(name, m.Path+"/") })
}

// Close frees the trees of the submodules; that of the commit stays open.
func (w *Whole) Close() {
	for _, tree := range w.trees {
		_ = tree.Close()
	}
}

// Fetch fetches the submodules that are in directories of a tree, or that these
// directories are in; none of them means all. The caller closes the Whole.
//
// Errors: ErrUnusable; those of git.Remote, with the path and the URL of the
// submodule.
func Fetch(ctx context.Context, tree *git.Tree, from Source, directories []string) (*Whole, error) {
	base, err := url.Parse(from.URL)
	if err != nil {
		return nil, git.ErrURL
	}
	f := &fetcher{from: from, origin: base, whole: &Whole{}}
	if from.Options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, from.Options.Timeout)
		defer cancel()
	}
	if f.whole.Tree, err = f.graft(ctx, tree, place{url: base, wanted: wantedOf(directories)}); err != nil {
		f.whole.Close()
		return nil, err
	}
	return f.whole, nil
}

// LeftOut returns the paths of the submodules of a tree that Fetch would fetch first, sorted: none where no file says that there are
// any. It asks no server. Errors: ErrUnusable.
func LeftOut(ctx context.Context, tree fs.FS, directories []string) ([]string, error) {
	if _, err := fs.Stat(tree, File); err != nil {
		return nil, nil // nearly always, and cheaper than to look through all of it
	}
	links, err := (&fetcher{}).links(ctx, tree, place{wanted: wantedOf(directories)})
	var out []string
	for _, link := range links {
		out = append(out, link.path)
	}
	return out, err
}

// wantedOf returns the directories of which submodules are wanted; "." for all.
func wantedOf(directories []string) []string {
	if len(directories) == 0 {
		return []string{"."}
	}
	var out []string
	for _, dir := range directories {
		out = append(out, path.Clean(strings.Trim(dir, "/")))
	}
	return out
}

// fetcher fetches the submodules of one commit.
type fetcher struct {
	from   Source
	origin *url.URL
	whole  *Whole
	looked int // entries of trees
}

// place is a tree among those of a commit.
type place struct {
	url    *url.URL
	path   string   // from the root of the commit; empty for the commit's own tree
	wanted []string // directories in it
	depth  int
}

// graft returns a tree with its submodules.
func (f *fetcher) graft(ctx context.Context, tree fs.FS, at place) (fs.FS, error) {
	links, err := f.links(ctx, tree, at)
	if err != nil || len(links) == 0 {
		return tree, err
	}
	first := line(path.Join(at.path, links[0].path))
	if at.depth == mostDeep {
		return nil, fmt.Errorf("%w: %s is more than %d submodules deep", ErrUnusable, first, mostDeep)
	}
	text, err := fs.ReadFile(tree, File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is one, and there is no %s that says where it comes from: git submodule add", ErrUnusable, first, path.Join(at.path, File))
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path.Join(at.path, File), err)
	}
	urls, err := parse(text)
	if err != nil {
		return nil, err
	}
	out := &grafted{base: tree, at: map[string]fs.FS{}}
	for _, link := range links {
		sub := place{path: path.Join(at.path, link.path), wanted: below(at.wanted, link.path), depth: at.depth + 1}
		raw, known := urls[link.path]
		if !known {
			return nil, fmt.Errorf("%w: %s has no entry in %s that says where it comes from", ErrUnusable, line(sub.path), path.Join(at.path, File))
		}
		if sub.url, err = resolve(at.url, raw); err != nil {
			return nil, fmt.Errorf("%w: %s: %q %w", ErrUnusable, line(sub.path), line(git.MaskURL(raw)), err)
		}
		if out.at[link.path], err = f.fetch(ctx, sub, link.commit); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// link is an entry of a tree that stands for a submodule.
type link struct{ path, commit string }

// links returns the submodules of a tree that are wanted, sorted by path.
func (f *fetcher) links(ctx context.Context, tree fs.FS, at place) ([]link, error) {
	var out []link
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read tree: %w", err)
		}
		if f.looked++; f.looked > mostEntries {
			return fmt.Errorf("%w: more than %d entries in all trees", ErrUnusable, mostEntries)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(below(at.wanted, name)) == 0 {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.Type() != fs.ModeIrregular {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return fmt.Errorf("read tree: %w", err)
		}
		if commit, is := info.Sys().(git.SubmoduleCommit); is {
			out = append(out, link{name, string(commit)})
		}
		return nil
	})
	return out, err
}

// below returns which directories are wanted below a name; "." is all of it.
func below(wanted []string, name string) []string {
	var out []string
	for _, dir := range wanted {
		switch {
		case dir == "." || dir == name || strings.HasPrefix(name, dir+"/"):
			return []string{"."}
		case name == ".":
			out = append(out, dir)
		case strings.HasPrefix(dir, name+"/"):
			out = append(out, strings.TrimPrefix(dir, name+"/"))
		}
	}
	return out
}

// fetch returns the tree of one submodule, with those within it.
func (f *fetcher) fetch(ctx context.Context, at place, commit string) (fs.FS, error) {
	if len(f.whole.trees) == mostNumber {
		return nil, fmt.Errorf("%w: %s is one more than %d, which are allowed", ErrUnusable, line(at.path), mostNumber)
	}
	tree, err := f.transfer(ctx, at, commit)
	if err != nil {
		return nil, f.explain(at, commit, err)
	}
	from := *at.url
	from.User, from.RawQuery, from.Fragment = nil, "", ""
	f.whole.trees, f.whole.Modules = append(f.whole.trees, tree), append(f.whole.Modules, Module{Path: at.path, URL: line(from.String()), Commit: commit})
	return f.graft(ctx, tree, at)
}

func (f *fetcher) transfer(ctx context.Context, at place, commit string) (*git.Tree, error) {
	opts, cred := f.from.Options, f.from.Credentials
	opts.Limits.Pack = min(cmp.Or(opts.Limits.Pack, mostPack), mostPack)
	opts.Limits.Unpacked = min(cmp.Or(opts.Limits.Unpacked, mostUnpacked), mostUnpacked)
	if !origin.Same(at.url, f.origin) {
		cred = git.Credentials{}
		opts.Egress = origin.Beyond(ctx, opts.Egress, f.origin)
		opts.Kept = nil // what others have opened there may lead further than this may
	}
	remote, err := git.NewRemote(at.url.String(), cred, opts)
	if err != nil {
		return nil, err
	}
	resolved, err := remote.Resolve(ctx, git.Ref{Commit: commit})
	if err != nil {
		return nil, err
	}
	return remote.Fetch(ctx, resolved)
}

// explain adds to an error which submodule it is about, and what can be done.
func (f *fetcher) explain(at place, commit string, err error) error {
	name := fmt.Sprintf("submodule %s (%s)", line(at.path), line(git.MaskURL(at.url.String())))
	foreign := !origin.Same(at.url, f.origin)
	if errors.Is(err, git.ErrRepositoryNotFound) {
		err = &elsewhereError{err}
	}
	switch {
	case errors.Is(err, git.ErrURL), errors.Is(err, git.ErrRef):
		return fmt.Errorf("%w: %s: %s", ErrUnusable, name, err.Error())
	case errors.Is(err, git.ErrRefNotFound):
		return fmt.Errorf("%s: %w: the repository does not hand out the commit %s: push it there, or commit a submodule that is at one which was pushed", name, git.ErrRefNotFound, commit)
	case foreign && errors.Is(err, git.ErrCredentials): // a Secret that it names would not be used
		return fmt.Errorf("%s: %w: ssh takes a key%s", name, git.ErrCredentials, f.alone())
	case foreign && (errors.Is(err, git.ErrUnauthorized) || errors.Is(err, git.ErrRepositoryNotFound)):
		return fmt.Errorf("%s: %w%s", name, err, f.alone())
	default:
		return fmt.Errorf("%s: %w", name, err)
	}
}

// alone says what to do about a submodule that the credentials do not go to. Flotilla's next steps know it by its beginning.
func (f *fetcher) alone() string {
	return fmt.Sprintf("; the credentials of spec.secretRef are for %s://%s alone: write a relative URL into %s, or one with https:// that everybody may read", f.origin.Scheme, f.origin.Host, File)
}

// elsewhereError is an error of a remote whose URL stands in the commit, and not in the spec.
type elsewhereError struct{ error }

// Error says where the URL stands.
func (e *elsewhereError) Error() string { return strings.ReplaceAll(e.error.Error(), "spec.url", File) }

// Unwrap returns the error of the remote.
func (e *elsewhereError) Unwrap() error { return e.error }
