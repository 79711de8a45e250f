package diskcache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/flotilla-io/flotilla/internal/durable"
)

// ErrInUse says that another process has locked the folder.
var ErrInUse = errors.New("another process uses the folder")

// Options configure a Cache. Dir and Scheme are required.
type Options struct {
	// Dir is the folder; it is created when it is missing.
	Dir string
	// Scheme knows the kinds that are kept.
	Scheme *runtime.Scheme
	// Back returns a channel that is closed while the hub serves a kind. Nil: that is not
	// known, and every request is sent.
	Back func(schema.GroupVersionKind) <-chan struct{}
	// Anew returns a count that changes when resource versions that were seen before no
	// longer mean anything: everything is listed again then. Nil: it never changes.
	Anew func() int
	// Trust returns an error while what is on disk may be older than what the member has seen
	// of the hub: no loop starts from disk without the hub then. Nil: it never is older.
	Trust func(context.Context) error
	// Timeout is how long the hub may take to answer the first list of a kind that
	// is on disk; zero means 10 s.
	Timeout time.Duration
	// Again is how often the list is requested again from a hub that failed it after a start
	// without it; zero means 30 s.
	Again time.Duration
	// Late is the delay with which statuses are written to disk; zero means
	// 15 s.
	Late time.Duration
	// Clock is the time; nil means the machine's.
	Clock clock.WithTicker
	// Log receives the errors of the disk.
	Log logr.Logger
}

// Cache keeps objects by their kinds. Use Open.
type Cache struct {
	options Options
	lock    *os.File

	mu      sync.Mutex
	stores  map[string]*kindStore
	closed  bool
	trusted bool
	doubt   string // why the folder is not trusted, as it was reported last
}

const identityFile = "hub"

// Open locks a folder and opens the cache in it. Errors: ErrInUse, or those of the disk.
func Open(o Options) (*Cache, error) {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&o.Timeout, 10*time.Second)
	set(&o.Again, 30*time.Second)
	set(&o.Late, 15*time.Second)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Back == nil {
		o.Back = func(schema.GroupVersionKind) <-chan struct{} { return nil }
	}
	if o.Trust == nil {
		o.Trust = func(context.Context) error { return nil }
	}
	if o.Anew == nil {
		o.Anew = func() int { return 0 }
	}
	if err := durable.MkdirAll(o.Dir); err != nil {
		return nil, fmt.Errorf("make the folder of what is kept: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(o.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the folder of what is kept: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("%w %s: each cluster has one agent", ErrInUse, o.Dir)
	}
	if err := sweep(o.Dir); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("clean up the folder of what is kept: %w", err)
	}
	return &Cache{options: o, lock: lock, stores: map[string]*kindStore{}}, nil
}

// Close unlocks the folder. Lists and watches that have not ended by then are
// not kept any more. It may be called twice.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	for _, r := range c.stores {
		r.close()
	}
	return c.lock.Close()
}

// Hub returns the identity of the hub that the content is from; empty if
// there was none yet. One that is damaged is an error: without it content could
// be taken for another hub's.
func (c *Cache) Hub() (string, error) {
	content, err := readFile(filepath.Join(c.options.Dir, identityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read which hub the disk cache is of: %w", err)
	}
	return string(content), nil
}

// Learn stores the identity of the hub.
func (c *Cache) Learn(identity string) error {
	if err := writeFile(filepath.Join(c.options.Dir, identityFile), []byte(identity)); err != nil {
		return err
	}
	return durable.SyncDir(c.options.Dir)
}

// Each calls f for every object of a kind that is on disk. Damaged ones are left
// out.
func (c *Cache) Each(example runtime.Object, f func(runtime.Object)) error {
	r, err := c.store(example)
	if err != nil {
		return err
	}
	stored, err := r.load()
	if err != nil {
		return err
	}
	for _, obj := range stored.objects {
		f(obj)
	}
	return nil
}

// NewInformer returns an informer that lists and watches through the Cache. It has
// the signature of controller-runtime's option cache.Options.NewInformer.
func (c *Cache) NewInformer(source cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	r, err := c.store(example)
	if err != nil {
		c.options.Log.Error(err, "a kind is not kept on disk")
		return cache.NewSharedIndexInformer(source, example, resync, indexers)
	}
	informer := cache.NewSharedIndexInformer(&keeper{store: r, source: cache.ToListerWatcherWithContext(source)}, example, resync, indexers)
	r.attach(informer.GetStore())
	return informer
}

// store returns the store of a kind.
func (c *Cache) store(example runtime.Object) (*kindStore, error) {
	gvk, err := apiutil.GVKForObject(example, c.options.Scheme)
	if err != nil {
		return nil, err
	}
	name := strings.ToLower(gvk.Kind + "." + gvk.Version + "." + gvk.Group)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.stores[name]; ok {
		return r, nil
	}
	r := &kindStore{cache: c, closed: c.closed, gvk: gvk, dir: filepath.Join(c.options.Dir, name), files: map[string]fileInfo{}, late: map[string]bool{}, missed: map[string]runtime.Object{}}
	c.stores[name] = r
	return r, nil
}

// Run writes delayed statuses until ctx ends, and then what is left.
func (c *Cache) Run(ctx context.Context) {
	ticker := c.options.Clock.NewTicker(c.options.Late)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			c.Flush()
			return
		case <-ticker.C():
			c.Flush()
		}
	}
}

// Flush writes all delayed statuses now.
func (c *Cache) Flush() {
	c.mu.Lock()
	stores := make([]*kindStore, 0, len(c.stores))
	for _, r := range c.stores {
		stores = append(stores, r)
	}
	c.mu.Unlock()
	for _, r := range stores {
		r.flush()
	}
}
