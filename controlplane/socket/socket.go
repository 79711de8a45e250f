// Package socket finds a place for a socket that nobody but the owner of a folder may
// open.
//
// In goes a folder that no other process holds; out comes a path that is short enough
// for the system, and what removes it. What a run that was killed has left is removed by
// the next one on the same folder. The package listens to nothing.
package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// maxPath is what a socket's address holds on the systems we run on, less the
	// ending zero; Linux has 108 bytes, Darwin 104.
	maxPath = 103
	// prefix begins the names of folders under the system's temporary one.
	prefix = "flotilla-socket-"
	// noteFile, in the folder, names the other one that has the socket.
	noteFile = ".elsewhere"
)

// Place is where a socket goes.
type Place struct {
	// Path is the socket's. Nothing is created yet.
	Path string

	elsewhere string // the folder that is to be removed; empty if the socket is in its owner's
	note      string
}

// New returns the place of a socket in a folder, which is made if it is missing, or in a
// private one under the system's temporary folder where the path would be too long.
func New(dir, name string) (*Place, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("place a socket: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("place a socket: %w", err)
	}
	p := &Place{Path: filepath.Join(dir, name), note: filepath.Join(dir, name+noteFile)}
	if err := p.sweep(); err != nil {
		return nil, fmt.Errorf("remove the socket of an earlier run: %w", err)
	}
	if len(p.Path) <= maxPath {
		return p, nil
	}
	if p.elsewhere, err = os.MkdirTemp("", prefix); err != nil {
		return nil, fmt.Errorf("place a socket: %w", err)
	}
	p.Path = filepath.Join(p.elsewhere, name)
	if err := os.WriteFile(p.note, []byte(p.elsewhere), 0o600); err != nil {
		return nil, fmt.Errorf("place a socket: %w", errors.Join(err, p.Remove()))
	}
	return p, nil
}

// Find returns the path of the socket of whoever holds a folder.
func Find(dir, name string) (string, error) {
	elsewhere, err := os.ReadFile(filepath.Join(dir, name+noteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return filepath.Join(dir, name), nil
	}
	if err != nil {
		return "", fmt.Errorf("find a socket: %w", err)
	}
	return filepath.Join(string(elsewhere), name), nil
}

// sweep removes what an earlier run has left: nobody listens there any more.
func (p *Place) sweep() error {
	if err := remove(p.Path); err != nil {
		return err
	}
	left, err := os.ReadFile(p.note)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	old := &Place{Path: filepath.Join(string(left), filepath.Base(p.Path)), elsewhere: string(left), note: p.note}
	if !filepath.IsAbs(old.elsewhere) || !strings.HasPrefix(filepath.Base(old.elsewhere), prefix) {
		return remove(p.note) // it names no folder of ours
	}
	return old.Remove()
}

// Remove takes the socket away, with the folder that was made for it.
func (p *Place) Remove() error {
	err := remove(p.Path)
	if p.elsewhere != "" {
		err = errors.Join(err, remove(p.elsewhere), remove(p.note))
	}
	return err
}

// remove removes one file, or an empty folder, if it is there.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
