// Package setback detects that the hub's store was restored from an older
// backup, and holds the hub until a person decides to go on.
//
// In go the marks that members carry and the changes that concern them; out come
// whether the hub waits, and the marks that are to be written. The history of the hub is
// an annotation of its namespace kube-system, so that neither a restart nor later
// writes lose it. The conclusions are policies/hubclaim's; the
// package writes nothing to members.
package setback

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// Keeper knows whether the hub waits. Use New.
type Keeper struct {
	hub   client.Client // with the right to write the hub's namespace kube-system
	live  client.Reader // not from the cache
	clock clock.PassiveClock

	mu         sync.Mutex
	runs       runs // of this keeper
	known      bool // history and began have been read
	began      int64
	history    hubclaim.History
	version    int64        // resource version that history was read at
	unrecorded bool         // the hold is not in the store yet
	run        hubclaim.Run // zero until it is in the store
	wrote      int64        // the revision at which it was recorded
	seen       map[string]int64
	first      int64 // the first revision of this run that concerned a cluster; 0: none yet
	reported   []func()
	agents     *agents
}

// runs are the runs of one keeper: renew adds one.
type runs struct {
	id   string // of the present run
	over []string
}

// without returns the history that goes on without any mark of the runs that are over up
// to a revision: all of them were seen before that.
func (r runs) without(h hubclaim.History, upTo int64) hubclaim.History {
	for _, over := range r.over {
		h = h.Without(over, upTo)
	}
	return h
}

// New returns a Keeper that has read nothing yet. hub writes, live reads from the
// server; nil is the machine's clock.
func New(hub client.Client, live client.Reader, now clock.PassiveClock) *Keeper {
	if now == nil {
		now = clock.RealClock{}
	}
	return &Keeper{hub: hub, live: live, clock: now, runs: runs{id: rand.Text()}, seen: map[string]int64{}, agents: newAgents()}
}

// Opened sets the revision that the store had before this start wrote anything:
// what was lost is derived from that. It is for a store that nobody else has written
// since, and is called before Begin.
func (k *Keeper) Opened(revision int64) { k.began = revision }

// OnChange adds a function to call when a cluster begins to wait, when the reason changes, and
// when it goes on.
// It is called before anything is weighed, and must not block.
func (k *Keeper) OnChange(reported func()) { k.reported = append(k.reported, reported) }

// Hold returns why the hub waits; nil if it does not.
func (k *Keeper) Hold() *hubclaim.Hold {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.history.Hold
}

// HoldOf returns why a cluster waits; nil if it does not.
func (k *Keeper) HoldOf(cluster string) *hubclaim.Hold { return k.Hold().Of(cluster) }

// Begin reads the store's revision and the history. Until it has, no mark can
// be weighed. It may be called again, and does nothing then.
func (k *Keeper) Begin(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known {
		return nil
	}
	began, err := revision(ctx, k.live, &corev1.NamespaceList{})
	if err != nil {
		return err
	}
	system, err := k.system(ctx)
	if err != nil {
		return err
	}
	if k.began > 0 {
		began = min(began, k.began)
	}
	k.began, k.known, k.version = began, true, number(system.ResourceVersion)
	k.history = hubclaim.ParseHistory(system.Annotations[clusterv1alpha1.HistoryAnnotation])
	for _, seen := range k.seen {
		if seen > began { // the first one is not known any more
			k.first = began + 1
			k.agents.need()
		}
	}
	return nil
}

// revision returns that of the store: a list's, since an object's is older.
func revision(ctx context.Context, hub client.Reader, list client.ObjectList, of ...client.ListOption) (int64, error) {
	if err := hub.List(ctx, list, append(of, client.Limit(1))...); err != nil {
		return 0, fmt.Errorf("read the revision of the hub's store: %w", err)
	}
	if revision := number(list.GetResourceVersion()); revision > 0 {
		return revision, nil
	}
	return math.MaxInt64, nil // a store that counts otherwise: only its runs show it
}

func (k *Keeper) system(ctx context.Context) (*corev1.Namespace, error) {
	system := &corev1.Namespace{}
	if err := k.live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return nil, fmt.Errorf("read the history of the hub: %w", err)
	}
	return system, nil
}

// Learned adopts the history from the hub's namespace, as a watch shows it.
func (k *Keeper) Learned(system *corev1.Namespace) {
	if system.Name != metav1.NamespaceSystem {
		return
	}
	history := hubclaim.ParseHistory(system.Annotations[clusterv1alpha1.HistoryAnnotation])
	k.mu.Lock()
	version := number(system.ResourceVersion)
	changed := k.known && version > k.version && !(k.unrecorded && history.Hold == nil)
	k.mu.Unlock()
	if changed {
		k.set(history, version)
	}
}

// number reads a resource version; 0 for one that is no number.
func number(resourceVersion string) int64 {
	n, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// set stores a history of a version, and reports if the hub begins to wait, waits for
// another reason, or goes on: marks of clusters are compared with it.
func (k *Keeper) set(h hubclaim.History, version int64) {
	k.mu.Lock()
	k.version = max(k.version, version)
	turned := why(k.history.Hold) != why(h.Hold)
	k.history = h
	if h.Forgives(&hubclaim.Mark{ID: k.runs.id, Revision: 1}) {
		k.renew()
	}
	k.mu.Unlock()
	if !turned {
		return
	}
	for _, changed := range k.reported {
		changed()
	}
}

// renew begins another run, since somebody has decided to go on without what the present
// one is reported to have lost: in a run that goes on, that would include all of its future writes,
// and the report of an agent may be forged. The lock is held.
func (k *Keeper) renew() {
	k.runs = runs{id: rand.Text(), over: append(slices.Clone(k.runs.over), k.runs.id)}
	k.run, k.wrote, k.first = hubclaim.Run{}, 0, 0
	for _, seen := range k.seen {
		k.began = max(k.began, seen)
	}
	k.began = max(k.began, k.version)
	k.agents.need()
}

// why returns a text of who waits and why; empty if nobody does.
func why(h *hubclaim.Hold) string {
	if h == nil {
		return ""
	}
	return h.Found()
}

// Saw records a revision that concerned a member.
func (k *Keeper) Saw(cluster, resourceVersion string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	revision := number(resourceVersion)
	k.seen[cluster] = max(k.seen[cluster], revision)
	if k.known && k.first == 0 && revision > k.began {
		k.first = revision
		k.agents.need()
	}
}

// Weigh compares the mark of a member with the store. A hub that is behind waits from
// then on, also if the store cannot record it. Errors: what the hub answered; the
// member must not be written to then.
func (k *Keeper) Weigh(ctx context.Context, cluster string, m *hubclaim.Mark) error {
	if err := k.Begin(ctx); err != nil {
		return err
	}
	// The hub's own marks of other runs are from before this one began.
	k.mu.Lock()
	report := m != nil && m.ID != k.runs.id && m.Revision > k.began
	k.mu.Unlock()
	return k.weigh(ctx, cluster, m, report)
}

// weigh is Weigh; reported says that the hub was found to be behind the mark.
func (k *Keeper) weigh(ctx context.Context, cluster string, m *hubclaim.Mark, report bool) error {
	if err := k.Begin(ctx); err != nil {
		return err
	}
	k.mu.Lock()
	if !k.history.Behind(m, k.runs.id, k.began) && (!report || k.history.Forgives(m)) {
		k.mu.Unlock()
		return nil
	}
	held, more := k.history.WithHold(cluster, m, k.began, k.clock.Now())
	more = more || k.unrecorded
	k.unrecorded = more
	k.mu.Unlock()
	if !more {
		return nil
	}
	k.set(held, 0)
	err := k.change(ctx, func(h hubclaim.History) (hubclaim.History, bool) {
		return h.WithHold(cluster, m, held.Hold.Store, held.Hold.Since)
	})
	if err == nil {
		k.mu.Lock()
		k.unrecorded = false
		k.mu.Unlock()
	}
	return err
}

// Next returns the mark that a member is to carry; nil if that is the one it has, and
// while the hub waits.
func (k *Keeper) Next(ctx context.Context, cluster string, have *hubclaim.Mark) (*hubclaim.Mark, error) {
	k.mu.Lock()
	known, held, run, seen, began := k.known, k.history.Hold.Of(cluster) != nil, k.run, k.seen[cluster], k.began
	forgiven := k.history.Forgives(have)
	if lent, ok := k.history.Lends(seen, k.began); ok && run.ID == "" && !forgiven {
		run = lent
	}
	k.mu.Unlock()
	if _, ok := hubclaim.Next(have, run, seen, forgiven); !known || held || !ok {
		return nil, nil
	}
	if run.ID == "" {
		var err error
		if k.agents.any() {
			err = k.Agents(ctx)
		} else {
			_, _, err = k.start(ctx, began)
		}
		if err != nil {
			return nil, err
		}
		k.mu.Lock()
		run = k.run
		k.mu.Unlock()
	}
	next, _ := hubclaim.Next(have, run, seen, forgiven)
	return &next, nil
}

// start records the present run in the store, and returns the revision at which it was recorded
// at the latest. With began as 0 the run's beginning is recorded later.
func (k *Keeper) start(ctx context.Context, began int64) (run hubclaim.Run, wrote int64, err error) {
	k.mu.Lock()
	runs, since := k.runs, k.began
	k.mu.Unlock()
	err = k.change(ctx, func(h hubclaim.History) (_ hubclaim.History, changed bool) {
		h, run, changed = runs.without(h, since).Starts(runs.id, began)
		return h, changed
	})
	if err != nil {
		return hubclaim.Run{}, 0, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.run.ID == "" && k.runs.id == runs.id { // otherwise another caller was faster
		k.run, k.wrote = run, k.version
	}
	return k.run, k.wrote, nil
}

// Resume removes the hold, so that the hub goes on.
func (k *Keeper) Resume(ctx context.Context) error {
	return k.change(ctx, func(h hubclaim.History) (hubclaim.History, bool) { return h.Resumes(), h.Hold != nil })
}

// change writes the edited history, unless edit reports that nothing changed.
func (k *Keeper) change(ctx context.Context, edit func(hubclaim.History) (hubclaim.History, bool)) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		system, err := k.system(ctx)
		if err != nil {
			return err
		}
		history, changed := edit(hubclaim.ParseHistory(system.Annotations[clusterv1alpha1.HistoryAnnotation]))
		if changed {
			before := system.DeepCopy()
			metav1.SetMetaDataAnnotation(&system.ObjectMeta, clusterv1alpha1.HistoryAnnotation, history.Encode())
			if err := k.hub.Patch(ctx, system, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
				return err
			}
		}
		k.set(history, number(system.ResourceVersion))
		return nil
	})
	if err != nil {
		return fmt.Errorf("write the history of the hub: %w", err)
	}
	return nil
}
