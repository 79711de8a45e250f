package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/discovery"

	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// lapse is the longest that another replica may take to lead once the leader was
// stopped, on a machine that is busy: afterwards the leader wakes up in any case.
const lapse = time.Minute

// A fault disturbs the fleet. What takes long goes on while others come; what is
// disturbed meanwhile is spared.
type fault struct {
	name   string
	weight int
	// on draws what is disturbed; nil where it is spared.
	on func(w *world, dice *rand.Rand) any
	do func(ctx context.Context, w *world, on any, d draw) error
}

// draw has all that a fault leaves to chance, so that none depends on how fast
// another one was.
type draw struct{ long, pause time.Duration }

// apart are the faults of a fleet whose loops run apart from the control plane, and
// together those of one whose control planes are replicas that run them.
var (
	apart = []fault{
		{"the control plane is killed", 9, func(w *world, _ *rand.Rand) any { return w.Hub }, kill},
		{"loops are killed", 9, func(w *world, dice *rand.Rand) any { return w.loops[dice.IntN(len(w.loops))] }, kill},
		{"the agent is killed", 9, func(w *world, _ *rand.Rand) any { return w.agent }, kill},
		{"the leader is stopped until another one leads", 8, func(w *world, _ *rand.Rand) any { return w.leader() }, depose},
		{"loops are stopped for a moment", 3, func(w *world, dice *rand.Rand) any { return w.loops[dice.IntN(len(w.loops))] }, freeze},
		{"a cluster is cut off", 6, func(w *world, dice *rand.Rand) any { return w.links[clusters[dice.IntN(len(clusters))]] }, cut},
	}
	together = []fault{
		{"a replica is killed", 14, func(w *world, dice *rand.Rand) any { return w.hubs[dice.IntN(len(w.hubs))] }, kill},
		{"the agent is killed", 8, func(w *world, _ *rand.Rand) any { return w.agent }, kill},
		{"the leader is stopped until another one leads", 8, func(w *world, _ *rand.Rand) any { return w.leader() }, depose},
		{"a replica is stopped for a moment", 4, func(w *world, dice *rand.Rand) any { return w.hubs[dice.IntN(len(w.hubs))] }, freeze},
		{"a replica is cut off from the store", 6, func(w *world, dice *rand.Rand) any { return w.links[w.hubs[dice.IntN(len(w.hubs))].Name] }, sever},
		{"all clients change over", 4, func(w *world, _ *rand.Rand) any { return w.front }, changeOver},
		{"a cluster is cut off", 6, func(w *world, dice *rand.Rand) any { return w.links[clusters[dice.IntN(len(clusters))]] }, cut},
	}
)

// kill kills a program and starts it again at once.
func kill(_ context.Context, w *world, on any, _ draw) error {
	p := on.(*localfleet.Process)
	err := p.Kill()
	w.avoid(p)
	if err != nil {
		return err
	}
	return w.run(p)
}

// freeze stops a program for a while, as a machine that hangs would.
func freeze(ctx context.Context, w *world, on any, d draw) error {
	p := on.(*localfleet.Process)
	if err := p.Pause(); err != nil {
		return err
	}
	w.avoid(p)
	pause(ctx, d.long/2)
	return p.Resume()
}

// depose stops a leader until another replica leads, and a little longer.
func depose(ctx context.Context, w *world, on any, d draw) error {
	p, begun := on.(*localfleet.Process), time.Now()
	if err := p.Pause(); err != nil {
		return err
	}
	w.avoid(p)
	for time.Since(begun) < lapse && ctx.Err() == nil && (w.leader() == p || w.contenders[w.leader()].lastRenewed().Before(begun)) {
		pause(ctx, 200*time.Millisecond)
	}
	pause(ctx, d.long/4)
	return p.Resume()
}

func cut(ctx context.Context, _ *world, on any, d draw) error {
	link := on.(*localfleet.Link)
	link.Cut()
	pause(ctx, d.long)
	link.Mend()
	return nil
}

// sever cuts a replica off from the store, sometimes for longer than it may lead
// without.
func sever(ctx context.Context, w *world, on any, d draw) error {
	d.long *= 3
	return cut(ctx, w, on, d)
}

// changeOver leads all clients to the next replica, although the one that they had is
// well.
func changeOver(_ context.Context, w *world, _ any, _ draw) error {
	w.front.turn()
	return nil
}

// avoid leads clients away from a control plane that does not answer, if there is
// another one.
func (w *world) avoid(p *localfleet.Process) {
	if w.front != nil && w.front.now() == p {
		w.front.turn()
	}
}

// leader is who has renewed the lease last.
func (w *world) leader() *localfleet.Process {
	return slices.MaxFunc(w.rivals, func(a, b *localfleet.Process) int {
		return w.contenders[a].lastRenewed().Compare(w.contenders[b].lastRenewed())
	})
}

// spared are what a fault has at present.
type spared struct {
	mu   sync.Mutex
	held map[any]bool
}

// take reports whether nothing disturbs on, and spares it from now on.
func (s *spared) take(on any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[on] {
		return false
	}
	s.held[on] = true
	return true
}

func (s *spared) release(on any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, on)
}

// disturb does a number of faults, some soon after each other and some once the fleet
// works again, and returns when all are over. It returns how many there were of each.
func (w *world) disturb(t *testing.T, number int, dice *rand.Rand) map[string]int {
	t.Helper()
	counts := map[string]int{}
	going := spared{held: map[any]bool{}}
	var others sync.WaitGroup
	failed, begun := make(chan error, number), time.Now()
	for n := 1; n <= number; {
		f := w.faults[weighted(w.faults, dice)]
		on := f.on(w, dice)
		d := draw{long: time.Duration(dice.IntN(8000)) * time.Millisecond, pause: time.Duration(dice.IntN(4000)) * time.Millisecond}
		patient := dice.IntN(2) == 0
		if !going.take(on) {
			continue
		}
		t.Logf("%9.3fs %3d: %s", time.Since(begun).Seconds(), n, f.name)
		n, counts[f.name] = n+1, counts[f.name]+1
		others.Go(func() {
			defer going.release(on)
			if err := f.do(t.Context(), w, on, d); err != nil {
				failed <- fmt.Errorf("%s: %w", f.name, err)
			}
		})
		pause(t.Context(), d.pause)
		if patient {
			w.ready(t)
		}
		w.revive(t, &going)
	}
	others.Wait()
	close(failed)
	var err error
	for e := range failed {
		err = errors.Join(err, e)
	}
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

func weighted(faults []fault, dice *rand.Rand) int {
	total := 0
	for _, f := range faults {
		total += f.weight
	}
	draw, i := dice.IntN(total), 0
	for ; draw >= faults[i].weight; i++ {
		draw -= faults[i].weight
	}
	return i
}

// run starts a program that is not running.
func (w *world) run(p *localfleet.Process) error {
	if c := w.contenders[p]; c != nil {
		c.again()
	}
	return p.Start()
}

// revive starts what has ended by itself, as loops may that cannot go on.
func (w *world) revive(t *testing.T, going *spared) {
	t.Helper()
	for _, p := range w.disturbed() {
		if !going.take(p) {
			continue
		}
		if p.Ended() {
			t.Logf("%s had ended", p.Name)
			if err := w.run(p); err != nil {
				t.Fatal(err)
			}
		}
		going.release(p)
	}
}

// ready waits until the control plane answers clients. Of replicas the next one is asked
// if it takes long: the one that clients are led to may have come into trouble since.
func (w *world) ready(t *testing.T) {
	t.Helper()
	for range w.hubs {
		if err := fleet.Until(t.Context(), 200*time.Millisecond, 5*time.Minute/time.Duration(len(w.hubs)), w.answers); err == nil {
			return
		}
		if w.front != nil {
			w.front.turn()
		}
	}
	t.Fatal("after a fault: the control plane does not answer")
}

// answers is nil if the control plane says that it is ready.
func (w *world) answers(ctx context.Context) error {
	config, err := w.config()
	if err != nil {
		return err
	}
	config.Timeout = answer
	ask, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	return ask.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}
