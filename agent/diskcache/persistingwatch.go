package diskcache

import (
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// mostPending is how many events may wait for the disk before the hub's watch is not read further.
const mostPending = 256

// persistingWatch passes on the events of a watch once their objects are on disk. Events that come while the
// disk is busy are written together.
type persistingWatch struct {
	inner watch.Interface
	store *kindStore
	out   chan watch.Event
	quit  chan struct{}
	once  sync.Once
}

func newPersistingWatch(inner watch.Interface, r *kindStore) *persistingWatch {
	t := &persistingWatch{inner: inner, store: r, out: make(chan watch.Event), quit: make(chan struct{})}
	pending := make(chan watch.Event, mostPending)
	go t.collect(pending)
	go t.pass(pending)
	return t
}

// ResultChan implements watch.Interface.
func (t *persistingWatch) ResultChan() <-chan watch.Event { return t.out }

// Stop implements watch.Interface.
func (t *persistingWatch) Stop() {
	t.once.Do(func() {
		close(t.quit)
		t.inner.Stop()
	})
}

func (t *persistingWatch) collect(pending chan<- watch.Event) {
	defer close(pending)
	for event := range t.inner.ResultChan() {
		select {
		case pending <- event:
		case <-t.quit:
			return
		}
	}
}

func (t *persistingWatch) pass(pending <-chan watch.Event) {
	defer close(t.out)
	for event := range pending {
		batch := []watch.Event{event}
		for more := true; more && len(batch) < mostPending; {
			select {
			case next, open := <-pending:
				if more = open; open {
					batch = append(batch, next)
				}
			default:
				more = false
			}
		}
		t.keep(batch)
		for _, event := range batch {
			select {
			case t.out <- event:
			case <-t.quit:
				return
			}
		}
	}
}

// keep writes the last state of each object in a batch.
func (t *persistingWatch) keep(batch []watch.Event) {
	last := map[string]watch.Event{}
	for _, event := range batch {
		if obj, ok := event.Object.(metav1.Object); ok && event.Type != watch.Bookmark && event.Type != watch.Error {
			last[keyOf(obj)] = event
		}
	}
	t.store.writing.Lock()
	defer t.store.writing.Unlock()
	if t.store.closed {
		return
	}
	var group errgroup.Group
	group.SetLimit(writers)
	wrote := false
	for key, event := range last {
		if obj, ok := event.Object.(metav1.Object); ok && event.Type != watch.Deleted && t.store.waits(obj) {
			continue
		}
		wrote = true
		group.Go(func() error {
			if event.Type == watch.Deleted {
				return t.store.remove(key)
			}
			return t.store.put(event.Object)
		})
	}
	if err := group.Wait(); wrote {
		t.store.report(t.store.commitList(err))
	}
}
