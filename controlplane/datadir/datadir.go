package datadir

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/flotilla-io/flotilla/internal/durable"
)

// ErrInUse says that another process holds the folder.
var ErrInUse = errors.New("data directory is in use by another process")

const (
	fileMode = 0o600
	lockFile = "lock"
)

// Dir is a folder held by this process until Close.
type Dir struct {
	path   string
	lock   *os.File
	folder *os.File
}

// Open makes the folder when it is missing and takes its lock. The lock goes
// away with the process, however it ends.
//
// Errors: ErrInUse if another process holds the folder.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := durable.MkdirAll(path); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_CREATE|os.O_RDWR, fileMode)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(lock.Name()) // the holder's pid is a courtesy; the error stands without it
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s is held by process %s: stop that first, or name another folder", ErrInUse, path, strings.TrimSpace(string(holder)))
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	folder, err := Lock(path)
	if err != nil {
		lock.Close()
		return nil, err
	}
	d := &Dir{path: path, lock: lock, folder: folder}
	d.sign()
	return d, nil
}

// Lock takes a file or a folder itself until what it returns is closed, or the process
// ends. A file system that does not lock folders has none locked.
//
// Errors: ErrInUse if somebody else has it.
func Lock(path string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		file.Close()
		return nil, fmt.Errorf("%w: %s is held by one whose lock file was removed (fuser -v shows it): stop that first, or name another folder", ErrInUse, path)
	}
	return file, nil
}

// sign leaves this process' id in the lock file, for whoever is refused. That is a
// courtesy: where there is no room for it, the folder is held all the same.
func (d *Dir) sign() {
	if d.lock.Truncate(0) == nil {
		_, _ = fmt.Fprintln(d.lock, os.Getpid())
	}
}

// Path joins the elements to the folder's absolute path.
func (d *Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// Close gives the folder up. The lock file stays, so that two processes never
// lock two different files of the same name.
func (d *Dir) Close() error {
	return errors.Join(d.folder.Close(), d.lock.Close())
}

// WriteFile puts content at path for the owner's eyes only, so that a reader or
// a crash sees the old content or the new, never a part, and a cut of the power takes
// nothing back. A file that already
// holds content is left alone; written reports whether it was not.
func WriteFile(path string, content []byte) (written bool, err error) {
	old, err := os.ReadFile(path)
	if err == nil && bytes.Equal(old, content) {
		return false, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("read before writing: %w", err)
	}
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return false, fmt.Errorf("make folder: %w", err)
	}
	if err := durable.WriteFile(path, content); err != nil {
		return false, fmt.Errorf("write %s: %w", path, err)
	}
	return true, nil
}
