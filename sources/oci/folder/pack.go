package folder

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/sourceignore/gitignore"

	"github.com/flotilla-io/flotilla/sources/artifact"
)

// ErrPath means that there is nothing to pack where something should be.
var ErrPath = errors.New("nothing to pack")

// Ignored is what is left out if nothing is said: as with Flux, Git's own files, pictures, films and archives.
func Ignored() []string {
	return append(strings.Split(sourceignore.ExcludeVCS, ","), strings.Split(sourceignore.ExcludeExt, ",")...)
}

// Selection is what belongs to a layer.
type Selection struct {
	// Ignore has exclusions in .gitignore's format.
	Ignore []string
	// Resolve takes what symbolic links lead to in their place; without it they are left out.
	Resolve bool
	// Limits bound what is taken.
	Limits artifact.Limits
}

// Packed is a layer.
type Packed struct {
	// Layer is the archive.
	Layer []byte
	// Files are what is in it.
	Files artifact.Files
	// Links are the symbolic links that were left out, sorted.
	Links []string
}

// Pack makes the layer of a folder, or of a single file. Errors: ErrPath, artifact.ErrTooLarge, and artifact.ErrMalformed for a name that no
// archive may have.
func Pack(ctx context.Context, at string, selection Selection) (Packed, error) {
	info, err := os.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Packed{}, fmt.Errorf("%w: there is no %s: name a folder, or a file", ErrPath, at)
	case err != nil:
		return Packed{}, fmt.Errorf("%w: %w", ErrPath, err)
	case !info.IsDir() && !info.Mode().IsRegular():
		return Packed{}, fmt.Errorf("%w: %s is neither a folder nor a file", ErrPath, at)
	}
	p := newPacking(at, selection)
	if info.IsDir() {
		if p.inside, err = os.OpenRoot(at); err != nil {
			return Packed{}, fmt.Errorf("%w: %w", ErrPath, err)
		}
		defer p.inside.Close()
		err = p.folder(ctx, at, ".", info)
	} else if err = p.header(".", tar.TypeDir, 0, alone); err == nil {
		err = p.file(at, filepath.Base(at), info)
	}
	if err != nil {
		return Packed{}, err
	}
	return p.end()
}

// PackText makes the layer of one file that is only a text.
func PackText(name string, content []byte, limits artifact.Limits) (Packed, error) {
	p := newPacking(name, Selection{Limits: limits})
	if err := p.header(".", tar.TypeDir, 0, alone); err != nil {
		return Packed{}, err
	}
	if err := p.fits(int64(len(content))); err != nil {
		return Packed{}, err
	}
	if err := p.content(name, content, 0o644); err != nil {
		return Packed{}, err
	}
	return p.end()
}

// alone is the mode of the folder that a single file is put into, as Flux makes one for it.
const alone = 0o700

// packing is one call of Pack.
type packing struct {
	at        string
	selection Selection
	matcher   gitignore.Matcher
	// inside is the folder; nil for a single file.
	inside *os.Root
	size   int64
	links  []string
	// above are the folders that the one at hand is in, as they are really called: a link to one of them leads round and round.
	above []string

	out bytes.Buffer
	zip *gzip.Writer
	tar *tar.Writer
}

func newPacking(at string, selection Selection) *packing {
	p := &packing{at: at, selection: selection}
	p.matcher = sourceignore.NewMatcher(sourceignore.ReadPatterns(strings.NewReader(strings.Join(selection.Ignore, "\n")), nil))
	p.zip = gzip.NewWriter(&p.out)
	p.tar = tar.NewWriter(p.zip)
	return p
}

func (p *packing) end() (Packed, error) {
	if err := errors.Join(p.tar.Close(), p.zip.Close()); err != nil {
		return Packed{}, p.fault(".", err)
	}
	files, err := artifact.Extract(bytes.NewReader(p.out.Bytes()), p.selection.Limits) // as whoever takes it will
	if err == nil {
		err = files.CheckTwins()
	}
	if err != nil {
		return Packed{}, p.refused(err)
	}
	slices.Sort(p.links)
	return Packed{Layer: p.out.Bytes(), Files: files, Links: p.links}, nil
}

func (p *packing) fault(name string, err error) error {
	return fmt.Errorf("pack %s: %w", filepath.Join(p.at, filepath.FromSlash(name)), err)
}

// ignored reports whether something is left out.
func (p *packing) ignored(name string, folder bool) bool {
	return name != "." && p.matcher.Match(strings.Split(name, "/"), folder)
}

// folder packs a folder. Of one that is left out the files are left out by themselves, unless an exclusion takes them back.
func (p *packing) folder(ctx context.Context, at, name string, info fs.FileInfo) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	really, err := filepath.EvalSymlinks(at)
	if err != nil {
		return p.fault(name, err)
	}
	if slices.Contains(p.above, really) {
		return nil
	}
	p.above = append(p.above, really)
	defer func() { p.above = p.above[:len(p.above)-1] }()
	if !p.ignored(name, true) {
		if err := p.header(name, tar.TypeDir, 0, mode(info)); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return p.fault(name, err)
	}
	for _, entry := range entries {
		if err := p.entry(ctx, filepath.Join(at, entry.Name()), path.Join(name, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// entry packs what is in a folder.
func (p *packing) entry(ctx context.Context, at, name string) error {
	info, err := os.Lstat(at)
	if err != nil {
		return p.fault(name, err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		switch {
		case p.ignored(name, false):
			return nil
		case !p.selection.Resolve:
			p.links = append(p.links, name)
			return nil
		}
		if info, err = os.Stat(at); err != nil {
			return p.fault(name, fmt.Errorf("the symbolic link leads nowhere: %w", err))
		}
	}
	switch {
	case info.IsDir():
		return p.folder(ctx, at, name, info)
	case info.Mode().IsRegular():
		return p.file(at, name, info)
	default: // devices, sockets and the like
		return nil
	}
}

func (p *packing) file(at, name string, info fs.FileInfo) error {
	if p.ignored(name, false) {
		return nil
	}
	if err := p.fits(info.Size()); err != nil {
		return err
	}
	content, err := p.read(at, name)
	if err != nil {
		return p.fault(name, err)
	}
	return p.content(name, content, mode(info))
}

// read reads a file. Where links are left out it is read as one of the folder: what somebody has put a link in the place of, since it was
// looked at, leads nowhere else.
func (p *packing) read(at, name string) ([]byte, error) {
	if p.inside == nil || p.selection.Resolve {
		return os.ReadFile(at)
	}
	return p.inside.ReadFile(name)
}

// fits errs if the files would be too large with one more of a size.
func (p *packing) fits(size int64) error {
	p.size += size
	return p.refused(p.selection.Limits.Check([]int64{p.size}))
}

// refused says why an archive would not be taken.
func (p *packing) refused(err error) error {
	if !errors.Is(err, artifact.ErrTooLarge) {
		if err != nil {
			err = p.fault(".", err)
		}
		return err
	}
	text, _, _ := strings.Cut(err.Error(), ":")
	return fmt.Errorf("%s is %w: %s, which no OCIRepository takes; leave some out with --ignore-paths", p.at, artifact.ErrTooLarge, text)
}

// mode is that of a file or a folder, as far as it counts: whoever may write it here has no say elsewhere.
func mode(info fs.FileInfo) int64 {
	if info.IsDir() || info.Mode()&0o100 != 0 {
		return 0o755
	}
	return 0o644
}

func (p *packing) content(name string, content []byte, mode int64) error {
	if err := p.header(name, tar.TypeReg, int64(len(content)), mode); err != nil {
		return err
	}
	if _, err := p.tar.Write(content); err != nil {
		return p.fault(name, err)
	}
	return nil
}

func (p *packing) header(name string, kind byte, size, mode int64) error {
	if err := p.tar.WriteHeader(&tar.Header{Typeflag: kind, Name: name, Size: size, Mode: mode, ModTime: time.Time{}}); err != nil {
		return p.fault(name, err)
	}
	return nil
}
