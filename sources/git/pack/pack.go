package pack

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/flotilla-io/flotilla/sources/git/wire"
)

// errPack means that a transfer is damaged. Details are not shown.
var errPack = fmt.Errorf("%w: the transfer is damaged", wire.ErrMalformed)

// Limits bound a transfer.
type Limits struct {
	// Objects is how many there may be.
	Objects int
	// Object is the size of one unpacked, Unpacked that of all, in bytes.
	Object, Unpacked int64
}

// Pack is a transferred set of objects in an unlinked file: the system frees it when it is closed, also when this process is
// killed. It must not be used from several goroutines.
type Pack struct {
	file    billy.File
	objects *packfile.Packfile
	count   int
	repeats bool  // an object
	size    int64 // unpacked
	length  int64 // of the file
	more    *Pack // what was transferred later; nil for nothing
}

// Receive spools a stream in a folder and indexes it. It reads the stream to its end. Errors: wire.ErrTooLarge,
// wire.ErrMalformed, or what the disk returns.
func Receive(stream io.Reader, folder string, limits Limits) (*Pack, error) {
	file, err := spool(folder)
	if err != nil {
		return nil, fmt.Errorf("spool transfer: %w", err)
	}
	p := &Pack{file: file}
	if err := p.fill(stream, limits); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Add receives more objects, as Receive does; the limits count for all together.
func (p *Pack) Add(stream io.Reader, folder string, limits Limits) error {
	more, err := Receive(stream, folder, Limits{Objects: limits.Objects - p.count, Object: limits.Object, Unpacked: limits.Unpacked - p.size})
	if err == nil {
		p.more = more
	}
	return err
}

// Close frees the spool file.
func (p *Pack) Close() {
	_ = p.file.Close()
	if p.more != nil {
		p.more.Close()
	}
}

// Object returns an object, or plumbing.ErrObjectNotFound.
func (p *Pack) Object(hash plumbing.Hash) (plumbing.EncodedObject, error) {
	encoded, err := p.objects.Get(hash)
	if err != nil && p.more != nil {
		return p.more.Object(hash)
	}
	return encoded, err
}

// Has reports whether the object was transferred.
func (p *Pack) Has(hash plumbing.Hash) bool {
	if _, err := p.objects.FindOffset(hash); err == nil {
		return true
	}
	return p.more != nil && p.more.Has(hash)
}

// Repeats reports whether an object is there twice: one that is a delta of its second copy, by where that is, cannot be read.
func (p *Pack) Repeats() bool { return p.repeats || p.more != nil && p.more.Repeats() }

// spool creates a file in a new folder and unlinks both; only the open file
// remains.
func spool(in string) (billy.File, error) {
	dir, err := os.MkdirTemp(in, "flotilla-fetch-")
	if err != nil {
		return nil, err
	}
	file, err := osfs.New(dir, osfs.WithBoundOS()).Create("objects.pack")
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		if file != nil {
			_ = file.Close()
		}
		return nil, err
	}
	return file, nil
}

// fill spools the stream while measuring it, and then indexes it.
func (p *Pack) fill(stream io.Reader, limits Limits) error {
	out := bufio.NewWriterSize(p.file, 64<<10)
	var err error
	if p.count, p.size, err = measure(io.TeeReader(stream, out), limits); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("spool transfer: %w", err)
	}
	if p.length, err = p.file.Seek(0, io.SeekEnd); err != nil {
		return fmt.Errorf("spool transfer: %w", err)
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("spool transfer: %w", err)
	}
	index := new(idxfile.Writer)
	parser, err := packfile.NewParser(packfile.NewScanner(p.file), index)
	if err != nil {
		return err
	}
	if _, err := parser.Parse(); err != nil {
		return errPack
	}
	idx, err := index.Index()
	if err != nil {
		return errPack
	}
	distinct, err := idx.Count()
	if err != nil {
		return errPack
	}
	p.repeats = distinct < int64(p.count)
	p.objects = packfile.NewPackfileWithCache(idx, nil, p.file, cache.NewObjectLRU(objectCache), 0)
	return nil
}

// objectCache is how many bytes of unpacked objects are cached while reading.
const objectCache = 16 << 20
