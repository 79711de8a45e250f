package registration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/flotilla-io/flotilla/cmd/flotilla/registration/installation"
	"github.com/flotilla-io/flotilla/internal/durable"
)

// reservedBytes is how much disk space is reserved in advance: more than a kubeconfig needs.
const reservedBytes = 64 << 10

// place is the reserved file for an agent's kubeconfig. It is reserved before the token is used: a
// token is usable only once, and would be lost if the kubeconfig could not be written. Use
// takePlace.
type place struct {
	path   string
	folder *os.File // locked
	draft  *os.File // in the same folder, of reservedBytes
}

// standaloneFile returns the path of the agent's kubeconfig in a folder.
func standaloneFile(folder string) string { return filepath.Join(folder, installation.Secret) }

// takePlace creates the folder, locks it, and reserves space in it. The caller must free the place.
// It fails if the folder or the file in it cannot be written, or if another register has locked the
// folder.
func takePlace(folder string) (p *place, err error) {
	p = &place{path: standaloneFile(folder)}
	defer func() {
		if err != nil {
			p.free()
			err = fmt.Errorf("nothing was asked for, and the token is as good as before: the agent's kubeconfig cannot go to %s: %w", folder, err)
		}
	}()
	if err := durable.MkdirAll(folder); err != nil {
		return p, err
	}
	if p.folder, err = os.Open(folder); err != nil {
		return p, err
	}
	if err := syscall.Flock(int(p.folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return p, fmt.Errorf("another flotilla register writes there (%w)", err)
	}
	if is, err := os.Lstat(p.path); err == nil && is.IsDir() {
		return p, fmt.Errorf("%s is a folder", p.path)
	}
	if p.draft, err = os.CreateTemp(folder, ".karmada-kubeconfig-"); err != nil { // is 0600
		return p, err
	}
	_, err = p.draft.Write(make([]byte, reservedBytes))
	return p, errors.Join(err, p.draft.Sync())
}

// keep writes the kubeconfig atomically.
func (p *place) keep(kubeconfig []byte) error {
	_, err := p.draft.WriteAt(kubeconfig, 0)
	err = errors.Join(err, p.draft.Truncate(int64(len(kubeconfig))), p.draft.Sync())
	if err == nil {
		err = os.Rename(p.draft.Name(), p.path)
	}
	if err == nil {
		err = durable.SyncDir(filepath.Dir(p.path))
	}
	if err != nil {
		return fmt.Errorf("write the agent's kubeconfig: %w", err)
	}
	return nil
}

// free releases the lock and the reserved space. A kubeconfig that was kept stays.
func (p *place) free() {
	if p.draft != nil {
		_ = p.draft.Close()
		_ = os.Remove(p.draft.Name()) // gone already if it was kept
	}
	if p.folder != nil {
		_ = p.folder.Close() // and with it the lock
	}
}
