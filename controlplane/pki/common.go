package pki

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/controlplane/datadir"
)

// Common stores the authorities and keys that several servers must share.
type Common interface {
	// Load returns the stored files by name, and the number of their version; nil and 0 if
	// there are none yet.
	Load(ctx context.Context) (files map[string][]byte, version int64, err error)
	// Save replaces the version that was loaded, 0 if there was none. It returns false if
	// there is another version by now.
	Save(ctx context.Context, files map[string][]byte, version int64) (saved bool, err error)
	// Heard waits for the leading server to publish its time, for as long as that takes. It
	// returns the first such time for which far returns true, and false if there is none.
	Heard(ctx context.Context, far func(time.Time) bool) (at time.Time, found bool, err error)
}

// maxApart is how far the clocks of two servers may differ for one of them to renew the
// shared files: as long as a certificate is backdated.
const maxApart = backdate

// saveAttempts is how often other servers may save first before agree fails.
const saveAttempts = 10

// replaced is the folder for keys that were on disk and differed from the shared ones.
const replaced = "replaced"

// OpenCommon is Open for one of several servers, which share their authorities and the
// service-account key. If common has none yet, it gets those of the folder. Otherwise the
// folder gets those of common, and keys in it that differ are moved to a folder of their own.
func OpenCommon(ctx context.Context, dir string, clk clock.WithTicker, common Common) (*Store, error) {
	s := newStore(dir, clk)
	s.common = common
	if err := s.renew(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// commonFiles returns the names of the files that all servers share.
func commonFiles() []string {
	return []string{"ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "service-account.key"}
}

// agree makes the folder and the shared files equal.
func (s *Store) agree(ctx context.Context, now time.Time) error {
	for range saveAttempts {
		kept, version, err := s.common.Load(ctx)
		if err != nil {
			return err
		}
		if err := s.take(kept); err != nil {
			return err
		}
		if err := undisputed(ctx, s.common, now, s.main, s.frontProxy); err != nil {
			return err
		}
		if err := s.ensureOwn(now); err != nil {
			return err
		}
		have, err := haveOf(s.dir)
		if err != nil {
			return err
		}
		if maps.EqualFunc(kept, have, bytes.Equal) {
			return nil
		}
		if saved, err := s.common.Save(ctx, have, version); err != nil || saved {
			return err
		}
	}
	return errors.New("other servers replace what all have again and again")
}

// undisputed returns an error if an authority is due by the own clock and the clock of the
// leading server differs by more than maxApart: one of the two is wrong, and a renewal by it
// would affect all servers. If no server leads, the own clock counts: the control plane may
// have been off for years.
func undisputed(ctx context.Context, common Common, now time.Time, authorities ...*authority) error {
	due := false
	for _, a := range authorities {
		bundle, err := a.bundle()
		if err != nil {
			return err
		}
		due = due || len(bundle) > 0 && standing(bundle, now) == nil
	}
	if !due {
		return nil
	}
	at, found, err := common.Heard(ctx, func(at time.Time) bool { return now.Sub(at).Abs() > maxApart })
	if err != nil {
		return err
	}
	if found {
		return fmt.Errorf("a CA is due for renewal by the clock of this machine, which says %s, and the replica that leads says %s: "+
			"set the clock that is wrong, and start again; nothing was renewed", now.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339))
	}
	return nil
}

// take replaces the files of the folder by the shared ones; nil means that there are none.
func (s *Store) take(kept map[string][]byte) error {
	if kept == nil {
		return nil
	}
	for _, name := range commonFiles() {
		if len(kept[name]) == 0 {
			return fmt.Errorf("what all servers have lacks %s", name)
		}
	}
	for _, name := range commonFiles() {
		if err := s.putAside(name, kept[name]); err != nil {
			return err
		}
		if _, err := datadir.WriteFile(s.path(name), kept[name]); err != nil {
			return err
		}
	}
	return nil
}

// putAside keeps a copy of a key that is about to be replaced by another one.
func (s *Store) putAside(name string, next []byte) error {
	old, err := os.ReadFile(s.path(name))
	if errors.Is(err, os.ErrNotExist) || bytes.Equal(old, next) || filepath.Ext(name) != ".key" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read before replacing: %w", err)
	}
	_, err = datadir.WriteFile(s.path(filepath.Join(replaced, name)), old)
	return err
}

// haveOf reads the shared files from a folder.
func haveOf(dir string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, name := range commonFiles() {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("read what all servers are to have: %w", err)
		}
		out[name] = content
	}
	return out, nil
}
