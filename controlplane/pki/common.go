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

// Common is where several servers keep the authorities and keys that they must
// have in common.
type Common interface {
	// Load returns the files that are kept, by name, and the number of their
	// version; nil and 0 if there are none yet.
	Load(ctx context.Context) (files map[string][]byte, version int64, err error)
	// Save replaces the version that was loaded, 0 for none. It says false if there
	// is another one by now.
	Save(ctx context.Context, files map[string][]byte, version int64) (saved bool, err error)
	// Heard listens to the server that leads, for as long as it takes to say what time
	// it is there, and returns the first time for which far says yes; false if there is
	// none.
	Heard(ctx context.Context, far func(time.Time) bool) (at time.Time, found bool, err error)
}

// maxApart is how far the clocks of two servers may be apart for one of them to renew
// what both have: as far as a certificate is backdated.
const maxApart = backdate

// saveAttempts is how often others may be faster before that is an error.
const saveAttempts = 10

// replaced is the folder of what was on disk and is not what all have.
const replaced = "replaced"

// OpenCommon is Open for one of several servers: authorities and the
// service-account key are those of all. Where none are kept yet, those of the folder
// are what is kept from then on; otherwise the folder gets what is kept, and other
// ones that it had are put aside in a folder of their own.
func OpenCommon(ctx context.Context, dir string, clk clock.WithTicker, common Common) (*Store, error) {
	s := newStore(dir, clk)
	s.common = common
	if err := s.renew(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// commonFiles are the names of what all servers have. Certificates of theirs that
// others only have to trust are not among them.
func commonFiles() []string {
	return []string{"ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "service-account.key"}
}

// agree brings the folder and what all have to the same.
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

// undisputed errs if an authority is due by the own clock, and that of the server that
// leads says something else: one of the two is wrong, and what would be made by that one
// is for all. Where nobody leads, the own clock counts: the control plane may have been
// off for years.
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

// take writes what is kept over what the folder has.
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

// putAside keeps a key that is about to be replaced by another one.
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

// haveOf reads what a folder has of what all have.
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
