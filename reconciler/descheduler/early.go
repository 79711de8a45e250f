package descheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

const (
	// apart is the least time between two looks at bindings that somebody reported: what
	// is reported is not trusted.
	apart = 10 * time.Second
	// mostSoon is how many of them are kept at most. All others wait for the interval.
	mostEarly = 4096
)

// early are the bindings that are looked at before their turn.
type early struct {
	mu   sync.Mutex
	due  map[client.ObjectKey]time.Time
	some chan struct{} // there is one more
}

// Soon has the binding of a workload, by its kind and name, be looked at once a replica that waits
// since then has done so for long enough. It never waits.
func (d *Descheduler) Soon(of workv1alpha2.ObjectReference, since time.Time) {
	key := client.ObjectKey{Namespace: of.Namespace, Name: workv1alpha2.BindingName(of.Kind, of.Name)}
	at := since.Add(d.opts.Threshold)
	d.early.mu.Lock()
	defer d.early.mu.Unlock()
	was, known := d.early.due[key]
	if known && !at.Before(was) || !known && len(d.early.due) >= mostEarly {
		return
	}
	if d.early.due == nil {
		d.early.due = map[client.ObjectKey]time.Time{}
	}
	d.early.due[key] = at
	select {
	case d.early.some <- struct{}{}:
	default:
	}
}

// take returns the bindings that are due, and forgets them.
func (s *early) take(now time.Time) []client.ObjectKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []client.ObjectKey
	for key, at := range s.due {
		if !at.After(now) {
			out = append(out, key)
			delete(s.due, key)
		}
	}
	return out
}

// next returns when the next is due; false: none is.
func (s *early) next() (at time.Time, some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, due := range s.due {
		if !some || due.Before(at) {
			at, some = due, true
		}
	}
	return at, some
}

// follow looks at all bindings now and then, and at those that are due between, until ctx ends.
func (d *Descheduler) follow(ctx context.Context) error {
	ticker := d.opts.Clock.NewTicker(d.opts.Interval)
	defer ticker.Stop()
	var last time.Time
	for {
		var err error
		wake, stop := d.alarm(last)
		select {
		case <-ctx.Done():
			stop()
			return nil
		case <-ticker.C():
			err = d.Run(ctx)
		case <-wake:
			last = d.opts.Clock.Now()
			err = d.inspect(ctx, d.early.take(last))
		case <-d.early.some:
		}
		stop()
		if err != nil {
			log.FromContext(ctx).Error(err, "look for replicas that find no node")
		}
	}
}

// alarm returns a channel that receives when the next binding is due, not too soon after the last time; nil
// where none is.
func (d *Descheduler) alarm(last time.Time) (wake <-chan time.Time, stop func()) {
	at, some := d.early.next()
	if !some {
		return nil, func() {}
	}
	if soonest := last.Add(apart); at.Before(soonest) {
		at = soonest
	}
	timer := d.opts.Clock.NewTimer(max(at.Sub(d.opts.Clock.Now()), 0))
	return timer.C(), func() { timer.Stop() }
}

// inspect looks at some bindings.
func (d *Descheduler) inspect(ctx context.Context, keys []client.ObjectKey) error {
	var failed []error
	err := d.sweep(ctx, func(visit func(workv1alpha2.Binding)) error {
		for _, key := range keys {
			b := &workv1alpha2.ResourceBinding{}
			switch err := d.hub.Get(ctx, key, b); {
			case err == nil:
				visit(b)
			case !apierrors.IsNotFound(err):
				failed = append(failed, fmt.Errorf("read binding %s: %w", key, err))
			}
		}
		return nil
	})
	return errors.Join(append(failed, err)...)
}
