package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// lapse is longer than a leader keeps its lease without renewing it.
const lapse = 20 * time.Second

// A fault disturbs the fleet and leaves everything running, if not working yet.
type fault struct {
	name   string
	weight int
	do     func(ctx context.Context, w *world, dice *rand.Rand) error
}

var faults = []fault{
	{"the control plane is killed", 10, func(_ context.Context, w *world, _ *rand.Rand) error { return restart(w.Hub) }},
	{"loops are killed", 10, func(_ context.Context, w *world, dice *rand.Rand) error {
		return restart(w.loops[dice.IntN(len(w.loops))])
	}},
	{"the agent is killed", 10, func(_ context.Context, w *world, _ *rand.Rand) error { return restart(w.agent) }},
	{"the leader is stopped for longer than its lease", 1, func(ctx context.Context, w *world, _ *rand.Rand) error {
		// A lease does not say which program holds it: of those that take turns, one does.
		for _, p := range w.loops {
			if err := freeze(ctx, p, lapse); err != nil {
				return err
			}
		}
		return nil
	}},
	{"loops are stopped for a moment", 3, func(ctx context.Context, w *world, dice *rand.Rand) error {
		return freeze(ctx, w.loops[dice.IntN(len(w.loops))], time.Duration(dice.IntN(5000))*time.Millisecond)
	}},
	{"a cluster is cut off", 6, func(ctx context.Context, w *world, dice *rand.Rand) error {
		link := w.links[clusters[dice.IntN(len(clusters))]]
		link.Cut()
		defer link.Mend()
		pause(ctx, time.Duration(dice.IntN(8000))*time.Millisecond)
		return nil
	}},
}

// restart kills a program and starts it again at once.
func restart(p *localfleet.Process) error { return errors.Join(p.Kill(), p.Start()) }

// freeze stops a program for a while, as a machine that hangs would.
func freeze(ctx context.Context, p *localfleet.Process, d time.Duration) error {
	if err := p.Pause(); err != nil {
		return err
	}
	pause(ctx, d)
	return p.Resume()
}

// disturb does a number of faults, some soon after each other, some once the fleet
// works again.
func (w *world) disturb(t *testing.T, number int, dice *rand.Rand) {
	t.Helper()
	total := 0
	for _, f := range faults {
		total += f.weight
	}
	for n := range number {
		draw := dice.IntN(total)
		i := 0
		for ; draw >= faults[i].weight; i++ {
			draw -= faults[i].weight
		}
		t.Logf("%3d: %s", n+1, faults[i].name)
		if err := faults[i].do(t.Context(), w, dice); err != nil {
			t.Fatal(err)
		}
		w.revive(t)
		if dice.IntN(2) == 0 {
			w.ready(t)
		}
		pause(t.Context(), time.Duration(dice.IntN(3000))*time.Millisecond)
	}
}

// revive starts what has ended by itself, as loops do that have lost their lease.
func (w *world) revive(t *testing.T) {
	t.Helper()
	for _, p := range w.disturbed() {
		if p.Ended() {
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// ready waits until the control plane answers.
func (w *world) ready(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := w.Hub.Ready(ctx); err != nil {
		t.Fatal(fmt.Errorf("after a fault: %w", err))
	}
}
