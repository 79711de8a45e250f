package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// Notice begins the warning that clients get while nothing new is stored.
const Notice = "the control plane is read-only"

const (
	// refreshPeriod is how often free space is read while nobody asks.
	refreshPeriod = time.Second
	// relieveEvery is after how many checks of the disk the store's own limit is checked once.
	relieveEvery = 10
	reserveFile  = "reserve"
)

// Options name the folder and its limits. Dir and Minimum are required.
type Options struct {
	// Dir is the folder. The reserve is kept in it.
	Dir string
	// Minimum is how many bytes must stay free. Half as many are held in reserve.
	Minimum int64
	// Database is a file that is written to within its size: space is allocated ahead,
	// a quarter of Minimum beyond its end, which nobody else can take. Empty for none.
	Database string
	// Relieve reports whether the store has reached a limit of its own, after it has
	// tried to make room; nil for a store that has none.
	Relieve func(context.Context) (full bool, err error)
	// Statfs asks the file system; nil means the function Statfs.
	Statfs func(dir string) (Space, error)
	// Log receives a line whenever there is no room any more, and when there is
	// again.
	Log logr.Logger
	// Clock times the checks; nil means the machine's.
	Clock clock.WithTicker
}

// State is how much may be stored.
type State struct {
	Level Level
	// Text says why not everything is; empty for Plenty.
	Text string
}

// Err is why nothing new is stored; nil while it is.
func (s State) Err() error {
	if s.Level == Plenty {
		return nil
	}
	return errors.New(s.Text)
}

// Disk is the free space of a control plane. A nil Disk has Plenty.
type Disk struct {
	opts Options

	mu    sync.Mutex
	state State
	atCap bool // the store has reached its own limit
}

// New returns a Disk that has not been checked yet.
func New(o Options) *Disk {
	if o.Statfs == nil {
		o.Statfs = Statfs
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Disk{opts: o}
}

// State checks how much may be stored right now. It is called before each write: a
// disk fills up faster than a periodic check would notice.
func (d *Disk) State() State {
	if d == nil {
		return State{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refresh()
}

// Start checks for the first time, before the store is started. The store rewrites its files
// at a start and needs space for that: where there is none, Start frees the reserve.
func (d *Disk) Start() {
	if state := d.State(); state.Level == Plenty {
		return
	}
	d.release()
	if info, err := os.Stat(d.opts.Database); err == nil {
		_ = os.Truncate(d.opts.Database, info.Size()) // gives back what lies beyond its end
	}
	d.State()
}

// Last is the State of the last check.
func (d *Disk) Last() State {
	if d == nil {
		return State{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

// Explain adds to an error that the disk is full, if that is so now.
func (d *Disk) Explain(err error) error {
	if err == nil || d.State().Level == Plenty {
		return err
	}
	return fmt.Errorf("data directory %s: %w: %w", d.opts.Dir, syscall.ENOSPC, err)
}

// refresh brings the state up to date. Where the disk cannot be read it stays as it was. The
// reserve is given up before nothing at all is stored.
func (d *Disk) refresh() State {
	space, err := d.opts.Statfs(d.opts.Dir)
	if err != nil {
		return d.state
	}
	level := judge(space, d.opts.Minimum, d.state.Level)
	if level == Exhausted && !space.ReadOnly && d.release() {
		if space, err = d.opts.Statfs(d.opts.Dir); err != nil {
			return d.state
		}
		level = judge(space, d.opts.Minimum, Low)
	}
	now := State{Level: level}
	switch {
	case level != Plenty:
		now.Text = Notice + ": " + space.describe(d.opts.Minimum)
	case d.atCap:
		now = State{Level: Low, Text: Notice + ": its store has reached its limit"}
	}
	d.turn(now, space)
	return d.state
}

// turn takes over a state, and reports when it is better or worse than the last.
func (d *Disk) turn(now State, space Space) {
	was := d.state
	d.state = now
	if was.Level == now.Level {
		return
	}
	log := d.opts.Log.WithValues("dir", d.opts.Dir, "free", amount(space.Bytes), "needed", amount(d.opts.Minimum))
	switch {
	case now.Level == Plenty:
		log.Info("There is room again: writes are accepted")
	case now.Level == Exhausted:
		log.Error(now.Err(), "Nothing is stored, and nothing deleted, until somebody makes room: reading goes on")
	case was.Level == Plenty:
		log.Error(now.Err(), "Writes are refused until somebody makes room: reading and deleting go on")
	}
}

// Run checks until ctx ends, and creates the reserve when there is space for it.
func (d *Disk) Run(ctx context.Context) error {
	if d == nil {
		<-ctx.Done()
		return nil
	}
	ticker := d.opts.Clock.NewTicker(refreshPeriod)
	defer ticker.Stop()
	for refreshes := 0; ; refreshes++ {
		if refreshes%relieveEvery == 0 {
			d.relieve(ctx)
		}
		if d.State().Level == Plenty {
			d.keepAhead()
			d.keepReserve()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// relieve asks the store whether it has reached its own limit.
func (d *Disk) relieve(ctx context.Context) {
	if d.opts.Relieve == nil {
		return
	}
	full, err := d.opts.Relieve(ctx)
	if err != nil && ctx.Err() == nil {
		d.opts.Log.Error(err, "The store does not say how full it is")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.atCap = full
}

func (d *Disk) reserve() string { return filepath.Join(d.opts.Dir, reserveFile) }

// release deletes the reserve, and reports whether there was one.
func (d *Disk) release() bool {
	info, err := os.Stat(d.reserve())
	return err == nil && info.Size() > 0 && os.Remove(d.reserve()) == nil
}

// keepAhead allocates space for the database ahead. Errors are ignored, of file systems
// without fallocate too: it matters only once the disk is full.
func (d *Disk) keepAhead() {
	if d.opts.Database == "" {
		return
	}
	f, err := os.OpenFile(d.opts.Database, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		_ = ahead(f, info.Size()+d.opts.Minimum/4)
	}
}

// keepReserve creates the reserve if it is missing and there is space for it besides
// what must stay free.
func (d *Disk) keepReserve() {
	size := d.opts.Minimum / 2
	if info, err := os.Stat(d.reserve()); err == nil && info.Size() >= size {
		return
	}
	if space, err := d.opts.Statfs(d.opts.Dir); err != nil || space.Bytes < enough(d.opts.Minimum)+size {
		return
	}
	if err := fill(d.reserve(), size); err != nil {
		d.opts.Log.Error(err, "No room is held in reserve")
	}
}

// fill makes a file that takes up all of its size.
func fill(path string, size int64) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("make the reserve: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			if gone := os.Remove(path); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}()
	if err := allocate(f, size); err != nil {
		return fmt.Errorf("make the reserve: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("make the reserve: %w", err)
	}
	return nil
}

// zeros writes a file to its size on file systems without fallocate.
func zeros(f *os.File, size int64) error {
	block := make([]byte, 1<<20)
	for left := size; left > 0; left -= int64(len(block)) {
		if _, err := f.Write(block[:min(left, int64(len(block)))]); err != nil {
			return err
		}
	}
	return nil
}
