package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// folderMode is for the owner alone.
const folderMode = 0o700

// disk syncs: a file's content, and a folder's
// names.
type disk struct{ sync func(*os.File) error }

// machine is the disk of this machine.
func machine() disk { return disk{sync: (*os.File).Sync} }

// WriteFile replaces the file at path atomically, readable only by its owner.
func WriteFile(path string, content []byte) error { return machine().write(path, content) }

// SyncDir syncs the names in a folder, after files were created, renamed or
// removed there.
func SyncDir(dir string) error { return machine().names(dir) }

// MkdirAll creates a folder and its parents, accessible only by the owner.
func MkdirAll(dir string) error { return machine().mkdir(filepath.Clean(dir)) }

func (d disk) write(path string, content []byte) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // made with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name()) // err is the error to return
		}
	}()
	if _, err = temp.Write(content); err == nil {
		err = d.sync(temp)
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return d.names(filepath.Dir(path))
}

func (d disk) names(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.sync(folder)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil // a file system that cannot do this for folders; nothing more can be done there
	}
	return errors.Join(err, folder.Close())
}

func (d disk) mkdir(dir string) error {
	if is, err := os.Stat(dir); err == nil && is.IsDir() {
		return nil
	} else if err == nil {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	above := filepath.Dir(dir)
	if above != dir {
		if err := d.mkdir(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, folderMode); errors.Is(err, fs.ErrExist) {
		if is, failed := os.Stat(dir); failed == nil && is.IsDir() {
			return d.names(above) // made by somebody else meanwhile, who may not have got this far
		}
		return err
	} else if err != nil {
		return err
	}
	return d.names(above)
}
