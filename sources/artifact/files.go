package artifact

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Errors that callers branch on.
var (
	// ErrTooLarge means that the files exceed Limits.
	ErrTooLarge = errors.New("too large")
	// ErrMalformed means that an archive is broken, or has entries that are not
	// allowed.
	ErrMalformed = errors.New("malformed archive")
	// ErrNotFound means that the store has no such artifact.
	ErrNotFound = errors.New("artifact not found")
	// ErrCorrupt means that an artifact's content does not match its digest.
	ErrCorrupt = errors.New("artifact corrupt")
	// ErrPath means that a requested path does not exist.
	ErrPath = errors.New("path not found")
	// ErrTwice means that two sets of files are to be one, and both have a path.
	ErrTwice = errors.New("there twice")
)

// File is one regular file, or the place of a symbolic link.
type File struct {
	Data       []byte
	Executable bool
	// Link says that a symbolic link stands here, of which no more is known: it is
	// not followed, and recorded only so that errors can name it.
	Link bool
}

// Files are files by their slash-separated path from the root.
type Files map[string]File

// Contents returns the bytes of each regular file by its path. The bytes are
// shared.
func (f Files) Contents() map[string][]byte {
	out := make(map[string][]byte, len(f))
	for name, file := range f {
		if !file.Link {
			out[name] = file.Data
		}
	}
	return out
}

// Links returns the paths of symbolic links, sorted.
func (f Files) Links() []string {
	var out []string
	for name, file := range f {
		if file.Link {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Limits bound a set of files. Zero fields have the default.
type Limits struct {
	// Files is the number of files. Default 10,000.
	Files int
	// Unpacked is the size of all files, in bytes. Default 50 MiB.
	Unpacked int64
	// Ratio is how many times larger than the archive its content may be. Default
	// 200.
	Ratio int64
}

func (l Limits) withDefaults() Limits {
	if l.Files == 0 {
		l.Files = 10_000
	}
	if l.Unpacked == 0 {
		l.Unpacked = 50 << 20
	}
	if l.Ratio == 0 {
		l.Ratio = 200
	}
	return l
}

// ratioFrom is the size of content up to which the ratio is not checked, in
// bytes.
const ratioFrom = 1 << 20

// budget counts files and bytes against limits.
type budget struct {
	limits Limits
	files  int
	bytes  int64
}

func (b *budget) add(size int64) error {
	switch {
	case b.files >= b.limits.Files:
		return fmt.Errorf("more than %d files: %w; exclude some with spec.ignore or .sourceignore", b.limits.Files, ErrTooLarge)
	case size < 0 || size > b.limits.Unpacked-b.bytes: // a sum could overflow
		return fmt.Errorf("more than %d bytes: %w; exclude files with spec.ignore or .sourceignore", b.limits.Unpacked, ErrTooLarge)
	}
	b.files++
	b.bytes += size
	return nil
}

// Check returns an error if files of these sizes exceed the limits. Errors:
// ErrTooLarge.
func (l Limits) Check(sizes []int64) error {
	b := budget{limits: l.withDefaults()}
	for _, size := range sizes {
		if err := b.add(size); err != nil {
			return err
		}
	}
	return nil
}

// Pack writes the files as a tar.gz. Equal files give equal bytes. Links are
// recorded by their names in a header that other readers skip.
func (f Files) Pack(w io.Writer) error {
	zip := gzip.NewWriter(w)
	out := tar.NewWriter(zip)
	if err := writeLinks(out, f.Links()); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		file := f[name]
		if file.Link {
			continue
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(file.Data)), Mode: 0o644, ModTime: time.Unix(0, 0)}
		if file.Executable {
			header.Mode = 0o755
		}
		if err := out.WriteHeader(header); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := out.Write(file.Data); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	if err := zip.Close(); err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	return nil
}

// Extract reads a tar.gz from an untrusted source. It refuses everything but
// regular files and directories, and names that lead out of the root. Errors:
// ErrTooLarge, ErrMalformed.
func Extract(r io.Reader, limits Limits) (Files, error) {
	files, _, err := extract(r, limits, false)
	return files, err
}

func extract(r io.Reader, limits Limits, skipLinks bool) (files Files, links []string, err error) {
	counted := &counter{r: r}
	zip, err := gzip.NewReader(bufio.NewReader(counted))
	if err != nil {
		return nil, nil, malformed(err)
	}
	defer zip.Close()
	x := extraction{budget: budget{limits: limits.withDefaults()}, packed: counted, files: Files{}, skipLinks: skipLinks}
	// The limit of the reader is a little higher, as it also bounds what is
	// skipped: each entry has a header of its own.
	overhead := int64(x.budget.limits.Files)*tarOverhead + tarOverhead
	unpacked := io.LimitReader(zip, x.budget.limits.Unpacked+overhead)
	in := tar.NewReader(unpacked)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			if err := readEnd(unpacked); err != nil {
				return nil, nil, err
			}
			return x.files, x.skipped, nil
		}
		if err != nil {
			return nil, nil, malformed(err)
		}
		if err := x.entry(header, in); err != nil {
			return nil, nil, err
		}
	}
}

// tarOverhead is more than the headers and padding of an ordinary entry, in bytes.
const tarOverhead = 4 << 10

func malformed(err error) error {
	return fmt.Errorf("%w: %s", ErrMalformed, err.Error())
}

// maxPadding is how many zeros may follow the end of an archive, in bytes: some programs fill the last block.
const maxPadding = 1 << 20

// readEnd returns an error if something follows the end of an archive, which some readers take for a part of it and others do not.
func readEnd(r io.Reader) error {
	block := make([]byte, 4<<10)
	for seen := 0; ; {
		n, err := r.Read(block)
		if seen += n; seen > maxPadding || len(bytes.Trim(block[:n], "\x00")) > 0 {
			return fmt.Errorf("%w: something follows the end of the archive", ErrMalformed)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return malformed(err)
		}
	}
}

type counter struct {
	r io.Reader
	n int64
}

// Read counts what is read.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

type extraction struct {
	budget  budget
	entries int
	packed  *counter
	files   Files
	// skipLinks leaves out symbolic links; skipped are their names.
	skipLinks bool
	skipped   []string
}

func (x *extraction) entry(header *tar.Header, in io.Reader) error {
	if x.entries++; x.entries > 2*x.budget.limits.Files {
		return fmt.Errorf("more than %d entries: %w", 2*x.budget.limits.Files, ErrTooLarge)
	}
	if header.Typeflag == tar.TypeXGlobalHeader {
		x.links(header.PAXRecords[linksRecord])
		return nil
	}
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return fmt.Errorf("%w: %q is a sparse file", ErrMalformed, header.Name)
		}
	}
	name, err := entryName(header.Name)
	if err != nil {
		return err
	}
	switch {
	case header.Typeflag == tar.TypeDir:
		return nil
	case x.skipLinks && header.Typeflag == tar.TypeSymlink:
		x.skipped = append(x.skipped, name)
		return nil
	case header.Typeflag == tar.TypeReg:
	default:
		return fmt.Errorf("%w: %q is a link, device or other special file", ErrMalformed, header.Name)
	}
	if name == "." {
		return fmt.Errorf("%w: a file has no name", ErrMalformed)
	}
	if was, twice := x.files[name]; twice && !was.Link {
		return fmt.Errorf("%w: %q is there twice", ErrMalformed, name)
	}
	if err := x.budget.add(header.Size); err != nil {
		return err
	}
	data, err := x.read(in, header.Size)
	if err != nil {
		return err
	}
	x.files[name] = File{Data: data, Executable: header.FileInfo().Mode()&0o100 != 0}
	return nil
}

// read reads a file in pieces, so that a header with a wrong size allocates
// nothing.
func (x *extraction) read(in io.Reader, size int64) ([]byte, error) {
	var buf bytes.Buffer
	buf.Grow(int(min(size, ratioFrom)))
	for {
		n, err := io.CopyN(&buf, in, ratioFrom)
		if unpacked := x.budget.bytes - size + int64(buf.Len()); unpacked > ratioFrom && unpacked/max(x.packed.n, 1) > x.budget.limits.Ratio {
			return nil, fmt.Errorf("content over %d times the archive's size: %w", x.budget.limits.Ratio, ErrTooLarge)
		}
		if errors.Is(err, io.EOF) {
			return buf.Bytes(), nil
		}
		if err != nil || n == 0 {
			return nil, malformed(err)
		}
	}
}

// maxElement is the longest file name that file systems accept, in bytes.
const maxElement = 255

var driveLetter = regexp.MustCompile(`^[A-Za-z]:`)

// entryName returns the cleaned path for a name in an archive.
func entryName(raw string) (string, error) {
	name := path.Clean(strings.TrimSuffix(raw, "/"))
	bad := func(why string) (string, error) {
		return "", fmt.Errorf("%w: the name %q %s", ErrMalformed, raw, why)
	}
	switch {
	case !fs.ValidPath(name) || driveLetter.MatchString(raw):
		return bad("leads out of the archive")
	case slices.Contains(strings.Split(raw, "/"), ".."):
		return bad("leads upwards")
	case strings.ContainsRune(raw, '\\'):
		return bad("holds a backslash")
	case !utf8.ValidString(raw) || strings.ContainsFunc(raw, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }):
		return bad("holds control characters")
	}
	for element := range strings.SplitSeq(name, "/") {
		if len(element) > maxElement {
			return "", fmt.Errorf("%w: a name is longer than %d bytes", ErrMalformed, maxElement)
		}
	}
	return name, nil
}
