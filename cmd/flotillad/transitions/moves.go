package transitions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

const (
	// quiet is how long nothing more must be moved for a line to be complete: by
	// default templates are moved every two seconds.
	quiet = 3 * time.Second
	// longest is how long a line waits for more at most.
	longest = 30 * time.Second
	// mostNamed is how many clusters a line lists.
	mostNamed = 3
)

// move is what the templates of one line have in common.
type move struct {
	from, by, why string
}

// batch is what was moved and is not logged yet.
type batch struct {
	began time.Time
	to    map[string]bool
	count int
	first string // the title of one of them
	timer *time.Timer
}

// binding handles a changed binding.
func (w *watcher) binding(before, after workv1alpha2.Binding) {
	is := after.BindingSpec()
	if len(is.GracefulEvictionTasks) == 0 {
		return
	}
	was := before.BindingSpec()
	var to []string
	if m := eviction.MoveOf(was.Clusters, is.Clusters, "", time.Time{}); m != nil {
		to = m.To
	}
	for i := range is.GracefulEvictionTasks {
		task := &is.GracefulEvictionTasks[i]
		known := slices.ContainsFunc(was.GracefulEvictionTasks, func(t workv1alpha2.GracefulEvictionTask) bool { return t.FromCluster == task.FromCluster })
		if known || task.Producer == workv1alpha2.EvictionProducerScheduler { // the placement itself was changed
			continue
		}
		w.moved(task, to, titleOf(is.Resource))
	}
}

func titleOf(ref workv1alpha2.ObjectReference) string {
	return ref.Kind + " " + strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/")
}

// moved adds a template to the line about its cluster and cause.
func (w *watcher) moved(task *workv1alpha2.GracefulEvictionTask, to []string, title string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	now := time.Now()
	key := move{from: task.FromCluster, by: producer(task.Producer), why: task.Message}
	if key.why == "" {
		key.why = task.Reason
	}
	b := w.pending[key]
	if b == nil {
		b = &batch{began: now, to: map[string]bool{}, first: title}
		b.timer = time.AfterFunc(quiet, func() { w.complete(key, b) })
		w.pending[key] = b
	} else {
		b.timer.Reset(min(quiet, max(0, longest-now.Sub(b.began))))
	}
	b.count++
	for _, name := range to {
		b.to[name] = true
	}
}

// producer returns who moves, in words.
func producer(of string) string {
	switch of {
	case workv1alpha2.EvictionProducerTaintManager:
		return "failover"
	case workv1alpha2.EvictionProducerDrain:
		return "drain"
	case workv1alpha2.EvictionProducerApplicationFailover, workv1alpha2.EvictionProducerClusterApplicationFailover:
		return "application failover"
	default:
		return of
	}
}

// complete logs a batch, unless it was logged already.
func (w *watcher) complete(key move, b *batch) {
	w.mutex.Lock()
	if w.pending[key] != b {
		w.mutex.Unlock()
		return
	}
	delete(w.pending, key)
	b.timer.Stop()
	count, to := b.count, slices.Sorted(maps.Keys(b.to))
	why := w.cause(key, b.began)
	w.mutex.Unlock()

	w.opts.Log.Info("Moved off a cluster", "by", key.by, "cluster", key.from, "to", to, "templates", count, "why", why)
	if w.opts.Screen != nil {
		w.opts.Screen(time.Now(), line(key, count, b.first, to, why))
	}
}

// cause returns why templates left a cluster at a time: the taint of a cluster that
// is not ready says less than that it is not.
func (w *watcher) cause(key move, at time.Time) string {
	since, lost := w.notReady[key.from]
	if !lost || !strings.Contains(key.why, clusterv1alpha1.TaintClusterUnreachable) && !strings.Contains(key.why, clusterv1alpha1.TaintClusterNotReady) {
		return key.why
	}
	return "not ready for " + at.Sub(since).Round(time.Second).String()
}

func line(key move, count int, first string, to []string, why string) string {
	what := first
	if count > 1 {
		what = fmt.Sprintf("%d templates", count)
	}
	if len(to) == 0 { // it has run elsewhere all along
		return fmt.Sprintf("%s: %s removed from %s: %s", key.by, what, key.from, why)
	}
	return fmt.Sprintf("%s: %s moved off %s to %s: %s", key.by, what, key.from, excerpt.Names(to, mostNamed), why)
}

// stop logs what is pending.
func (w *watcher) stop() {
	w.mutex.Lock()
	pending := maps.Clone(w.pending)
	w.mutex.Unlock()
	for key, b := range pending {
		w.complete(key, b)
	}
}
