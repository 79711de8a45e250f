package objects

import (
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Options configure a Store. Zero fields take the default.
type Options struct {
	// Dir is the folder, for this Store alone; it is made when something is kept.
	Dir string
	// Most is how large all together may be, in bytes. Default 1 GiB. One repository may have a quarter of it.
	Most int64
	// DiskFull returns why nothing more should be kept; it may be nil, and returns nil where there is space.
	DiskFull func() error
	// Clock returns the time. Default: the system's.
	Clock clock.PassiveClock
}

const (
	defaultMost = 1 << 30
	share       = 4 // of Most, for one repository
	unused      = 7 * 24 * time.Hour
	// newPrefix is what the names of files begin with that are being written.
	newPrefix = "new-"
	suffix    = ".objects"
)

// Key is a digest of a repository, and of who reads it.
type Key [32]byte

func (k Key) file() string { return hex.EncodeToString(k[:]) + suffix }

// Store is a folder of what was fetched. Only one process may use it at a time, with any number of goroutines.
type Store struct {
	opts Options
	mu   sync.Mutex // over changes of the folder
}

// New returns a Store. It removes what an earlier process left unfinished.
func New(opts Options) *Store {
	if opts.Most == 0 {
		opts.Most = defaultMost
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	s := &Store{opts: opts}
	s.clear()
	return s
}

func (s *Store) path(name string) string { return filepath.Join(s.opts.Dir, name) }

// clear removes what is half written.
func (s *Store) clear() {
	entries, _ := os.ReadDir(s.opts.Dir) // a folder that is not there has none
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), newPrefix) {
			_ = os.Remove(s.path(entry.Name()))
		}
	}
}

// Open returns what there is of a repository, nil for nothing. The caller closes it.
func (s *Store) Open(key Key) *Kept {
	file, err := os.Open(s.path(key.file()))
	if err != nil {
		return nil
	}
	kept, err := read(file)
	if err != nil {
		_ = file.Close()
		s.Drop(key)
		return nil
	}
	now := s.opts.Clock.Now()
	_ = os.Chtimes(file.Name(), now, now) // who is used last goes last
	return kept
}

// Drop forgets a repository.
func (s *Store) Drop(key Key) { _ = os.Remove(s.path(key.file())) }

// Keep keeps a pack of a repository in place of what there was, if there is room.
func (s *Store) Keep(key Key, about About, pack io.Reader, length int64) {
	if s.opts.DiskFull != nil && s.opts.DiskFull() != nil || length > s.opts.Most/share {
		return
	}
	name, err := s.write(about, pack)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if os.Rename(name, s.path(key.file())) != nil {
		_ = os.Remove(name)
	}
	s.bound()
}

// write writes a new file, and returns its name.
func (s *Store) write(about About, pack io.Reader) (name string, err error) {
	if err := os.MkdirAll(s.opts.Dir, 0o700); err != nil {
		return "", err
	}
	file, err := os.CreateTemp(s.opts.Dir, newPrefix)
	if err != nil {
		return "", err
	}
	_, err = io.WriteString(file, about.line())
	if err == nil {
		_, err = io.Copy(file, pack)
	}
	now := s.opts.Clock.Now()
	if err = errors.Join(err, file.Close(), os.Chtimes(file.Name(), now, now)); err != nil {
		_ = os.Remove(file.Name())
	}
	return file.Name(), err
}

// bound removes what was not used for long, and what is too much, by the time of its last use.
func (s *Store) bound() {
	entries, err := os.ReadDir(s.opts.Dir)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && strings.HasSuffix(entry.Name(), suffix) {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	now, left := s.opts.Clock.Now(), s.opts.Most
	for _, file := range files {
		if left -= file.Size(); left < 0 || now.Sub(file.ModTime()) > unused {
			_ = os.Remove(s.path(file.Name()))
		}
	}
}
