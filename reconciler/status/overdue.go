package status

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

const (
	// passedOver is how many times as long a cluster may leave one Work behind while it
	// takes others up.
	passedOver = 6
	// polls is how many checks there are until a Work is overdue.
	polls = 5
)

// overdue tracks the Works that their clusters have not taken up for long. A cluster
// that stopped sends no event. One that is at work on many is not overdue:
// to report of each that it waits would cost a write for each. It is safe for use by
// several goroutines.
type overdue struct {
	clock clock.PassiveClock
	after time.Duration

	mu     sync.Mutex
	behind map[client.ObjectKey]*lag
	active map[string]time.Time // when a namespace of Works last had one that was taken up
}

// lag is a Work whose latest version its cluster has not taken up.
type lag struct {
	since    time.Time
	reported bool // it is overdue, and stays so until it is taken up
	found    bool // it was so when this loop first saw it: the binding's status may know more
	reportTo []reconcile.Request
}

func newOverdue(o Options) *overdue {
	return &overdue{clock: o.Clock, after: o.OverdueAfter, behind: map[client.ObjectKey]*lag{}, active: map[string]time.Time{}}
}

// observe records a Work; found says that it is seen for the first time.
func (o *overdue) observe(work *workv1alpha1.Work, found bool) {
	key := client.ObjectKeyFromObject(work)
	is := rollup.Behind(work)
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.behind[key]
	switch {
	case is && was == nil:
		o.behind[key] = &lag{since: o.clock.Now(), reportTo: bindingOf(work), found: found}
	case !is && was != nil:
		delete(o.behind, key)
		if work.DeletionTimestamp == nil && !ptr.Deref(work.Spec.SuspendDispatching, false) { // otherwise the cluster is not at fault
			o.active[key.Namespace] = o.clock.Now()
		}
	}
}

// recall keeps those of a binding's Works overdue that its status shows as overdue, where this
// loop has started since and has not seen them taken up.
func (o *overdue) recall(items []workv1alpha2.AggregatedStatusItem, works []*workv1alpha1.Work) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, work := range works {
		key := client.ObjectKeyFromObject(work)
		l := o.behind[key]
		if l != nil && !l.found || !rollup.Behind(work) || !rollup.SaysOverdue(items, work) {
			continue
		}
		if l == nil {
			l = &lag{since: o.clock.Now(), reportTo: bindingOf(work)}
			o.behind[key] = l
		}
		l.reported = true
	}
}

// gone forgets a Work.
func (o *overdue) gone(key client.ObjectKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.behind, key)
}

// has reports whether a Work is overdue.
func (o *overdue) has(work *workv1alpha1.Work) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.behind[client.ObjectKeyFromObject(work)]
	return l != nil && l.reported
}

// sweep returns the bindings of the Works that have become overdue.
func (o *overdue) sweep() []reconcile.Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.behind) == 0 {
		clear(o.active)
		return nil
	}
	var out []reconcile.Request
	now := o.clock.Now()
	for key, l := range o.behind {
		waits := now.Sub(l.since)
		idle := min(waits, now.Sub(o.active[key.Namespace]))
		if !l.reported && (idle >= o.after || waits >= passedOver*o.after) {
			l.reported = true
			out = append(out, l.reportTo...)
		}
	}
	return out
}

// attach checks periodically whether Works have become overdue, until ctx ends.
func (o *overdue) attach(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go wait.UntilWithContext(ctx, func(context.Context) {
		for _, req := range o.sweep() {
			queue.Add(req)
		}
	}, o.after/polls)
	return nil
}
