package draining

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/progress"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// The time between two polls: reading many bindings takes a while, and the control plane has other work.
const (
	pause = 500 * time.Millisecond
	share = 4 // the pause is at least this many times as long as the poll took
)

// hubTimeout is how long the control plane may not answer, for example during a restart, before Watch gives up.
const hubTimeout = 2 * time.Minute

// Watch follows the drain of one cluster. It changes nothing.
type Watch struct {
	Hub     client.Reader
	Cluster string
	Clock   clock.Clock
	// Out gets a line for each template that has left or cannot. ErrOut shows the
	// progress if it is a terminal.
	Out, ErrOut io.Writer
	// Timeout ends the watch, not the drain; 0 means no limit.
	Timeout time.Duration

	// rows are those of the last look, volumes what templates have that are to leave.
	rows    []drain.Row
	volumes volumes
	seen    map[string]drain.State
	warned  map[string]bool // of clusters that are not ready, by the row and the clusters, and of data
	ill     bool
	line    *progress.Line
	spoke   time.Time // when something was said last
	awaited string    // what was said last of what is waited for
}

// Begin records what is there, which counts until the end, and what has left before, so that it is not shown. It must be
// called before the drain begins and before Run.
func (w *Watch) Begin(ctx context.Context) error {
	w.spoke = w.Clock.Now()
	_, rows, err := read(ctx, w.Hub, w.Cluster, w.spoke, nil)
	w.rows, w.seen, w.warned = rows, map[string]drain.State{}, map[string]bool{}
	for i := range rows {
		if rows[i].State == drain.Left {
			w.seen[rows[i].Key()] = drain.Left
		}
	}
	if err != nil {
		return err
	}
	w.volumes = volumesOf(ctx, w.Hub, rows)
	for _, note := range w.volumes.notes {
		if _, err := fmt.Fprintf(w.ErrOut, "note: %s\n", note); err != nil {
			return err
		}
	}
	return nil
}

// Over reports whether nothing was there when the watch began that a drain has to move.
func (w *Watch) Over() bool {
	return !slices.ContainsFunc(w.rows, func(row drain.Row) bool { return row.State != drain.Left && row.State != drain.Finished })
}

// read reads how far the drain is.
func (w *Watch) read(ctx context.Context, now time.Time) (*clusterv1alpha1.Cluster, []drain.Row, error) {
	cluster, rows, err := read(ctx, w.Hub, w.Cluster, now, w.rows)
	if err != nil {
		return nil, nil, err
	}
	for i := range rows {
		w.volumes.add(&rows[i], w.Cluster)
	}
	w.rows = rows
	return cluster, rows, nil
}

// Run watches until nothing is on its way any more, and returns the state of each template. It
// returns an error, and the rows as well, if somebody ends the drain or the time is over.
func (w *Watch) Run(ctx context.Context) ([]drain.Row, error) {
	within, cancel := ctx, context.CancelFunc(func() {})
	if w.Timeout > 0 {
		within, cancel = context.WithTimeout(ctx, w.Timeout)
	}
	defer cancel()
	w.line = progress.Tasks(io.Discard, "", 0, nil)
	defer func() { w.line.End() }()
	var last []drain.Row
	answered := w.Clock.Now()
	for {
		began := w.Clock.Now()
		cluster, rows, err := w.read(within, began)
		next := max(pause, share*w.Clock.Since(began))
		switch {
		case within.Err() != nil:
			return last, w.ended(ctx, last)
		case err != nil && !passes(err):
			return last, err
		case err != nil && began.Sub(answered) >= hubTimeout:
			return last, fmt.Errorf("the control plane has given no answer for %s; the drain of %s goes on with it: flotilla drain %[2]s watches it: %w", hubTimeout, w.Cluster, err)
		case err != nil:
			if err := w.awaits("waiting for the control plane: "+excerpt.Line(err.Error()), next); err != nil {
				return last, err
			}
		default:
			answered = began
			if last = rows; !failover.Drains(cluster) {
				return last, fmt.Errorf("the drain of %s was ended by somebody: flotilla drain %[1]s begins again", w.Cluster)
			}
			if err := errors.Join(w.report(cluster, rows), w.awaits(awaited(rows), next)); err != nil || isDone(rows) {
				return last, err
			}
		}
		select {
		case <-within.Done():
			return last, w.ended(ctx, last)
		case <-w.Clock.After(next):
		}
	}
}

// passes reports whether a later poll may succeed: the control plane is busy or being restarted.
func passes(err error) bool {
	return apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err)
}

// isDone reports whether nothing is left to wait for.
func isDone(rows []drain.Row) bool { return len(pending(rows)) == 0 }

// pending returns the titles of the templates that are on their way.
func pending(rows []drain.Row) []string {
	var out []string
	for i := range rows {
		if s := rows[i].State; s == drain.Waits || s == drain.Leaves {
			out = append(out, rows[i].Title())
		}
	}
	return out
}

// report prints what has changed.
func (w *Watch) report(cluster *clusterv1alpha1.Cluster, rows []drain.Row) error {
	w.line.End()
	var faults []error
	for i := range rows {
		row := &rows[i]
		faults = append(faults, w.warn(row))
		if w.seen[row.Key()] == row.State {
			continue
		}
		w.seen[row.Key()] = row.State
		if text := w.progress(row); text != "" {
			w.spoke = w.Clock.Now()
			_, err := fmt.Fprintln(w.Out, text)
			faults = append(faults, err)
		}
	}
	if ill := !failover.Drainable(cluster); ill != w.ill {
		w.ill = ill
		if ill {
			w.spoke = w.Clock.Now()
			_, err := fmt.Fprintf(w.ErrOut, "warning: cluster %s is not ready any more: nothing more is moved off it until it is\n", w.Cluster)
			faults = append(faults, err)
		}
	}
	if waiting := pending(rows); len(waiting) > 0 {
		done := "moved"
		if t := drain.Count(rows); t.Left+t.Moving < t.Total {
			done = "settled (" + t.String() + ")"
		}
		w.line = progress.Tasks(w.ErrOut, done, len(rows), waiting)
	}
	return errors.Join(faults...)
}

// progress is the line for a row whose state is new; empty for one that moves.
func (w *Watch) progress(row *drain.Row) string {
	switch row.State {
	case drain.Left:
		text := row.Title() + " left " + w.Cluster
		if len(row.To) > 0 {
			text += " " + row.Goes()
		}
		if w.warned[row.Key()+" "] {
			return text // and what becomes of its data has been said
		}
		return text + data(row)
	case drain.Gone:
		return row.Title() + " is gone: " + row.Why
	case drain.Stays, drain.Refused, drain.Finished:
		return row.Title() + " stays in " + w.Cluster + ": " + row.Says()
	default:
		return ""
	}
}

// warn says once that a template goes to clusters which are not ready, and once that it takes no data along.
func (w *Watch) warn(row *drain.Row) error {
	var faults []error
	say := func(key, text string) {
		if key = row.Key() + " " + key; !w.warned[key] {
			w.warned[key], w.spoke = true, w.Clock.Now()
			_, err := fmt.Fprintf(w.ErrOut, "warning: %s leaves %s %s: %s\n", row.Title(), w.Cluster, row.Goes(), text)
			faults = append(faults, err)
		}
	}
	if len(row.Unready) > 0 {
		say(strings.Join(row.Unready, ","), row.Why)
	}
	if row.State == drain.Leaves && row.Data != "" && len(row.To) > 0 {
		say("", row.Data)
	}
	return errors.Join(faults...)
}

// ended returns an error that explains how to continue when the watch ends before the drain.
func (w *Watch) ended(ctx context.Context, rows []drain.Row) error {
	w.line.End()
	how := fmt.Sprintf("the drain of %s goes on: flotilla drain %[1]s watches it, flotilla uncordon %[1]s ends it", w.Cluster)
	if waiting := pending(rows); len(waiting) > 0 {
		are := "are on their way"
		if len(waiting) == 1 {
			are = "is on its way"
		}
		how = fmt.Sprintf("%d of %d %s, and %s%s", len(waiting), len(rows), are, how, w.reasons(rows))
	}
	if ctx.Err() == nil {
		return command.Lines(fmt.Errorf("not all has left within %s: %s", w.Timeout, how))
	}
	_, err := fmt.Fprintln(w.ErrOut, how)
	return errors.Join(err, context.Cause(ctx))
}

// reasons returns what the templates on their way wait for.
func (w *Watch) reasons(rows []drain.Row) string {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r drain.Row) bool { return r.State != drain.Waits && r.State != drain.Leaves })
	if len(rows) == 0 {
		return ""
	}
	text := listed(rows, w.Cluster, func(row *drain.Row) string { return cmp.Or(row.Why, "nothing is decided about it yet") })
	if len(rows) == 1 {
		return ";" + text
	}
	return ":" + text
}
