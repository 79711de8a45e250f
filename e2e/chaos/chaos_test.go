package chaos

import (
	"context"
	"errors"
	"flag"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/e2e/chaos/history"
	"github.com/flotilla-io/flotilla/e2e/fleet"
)

var (
	number = flag.Int("faults", 8, "how many faults there are")
	seed   = flag.Uint64("seed", 1949, "what the faults follow; 0 takes a new one")
	still  = flag.Duration("still", 10*time.Second, "for how long nothing may be written in the end")
)

// TestChaos disturbs a fleet while users change it. Afterwards all invariants hold: it
// has what they wrote, in every cluster, nothing went or came back that they did not
// ask for, and it is at rest.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts processes")
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("%d faults by the seed %d", *number, *seed)
	w := start(t)
	unwatch := w.watch(t)
	w.prepare(t)
	w.settled(t)
	before, err := w.uses(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	begun := time.Now()
	rest := w.busy(t.Context(), *seed)
	counts := w.disturb(t, *number, rand.New(rand.NewPCG(*seed, 0)))
	if err := rest(); err != nil {
		t.Error(err)
	}
	disturbed := time.Since(begun)
	w.settled(t)
	recovered := time.Since(begun) - disturbed
	h := w.judged(t, before)
	if err := unwatch(); err != nil {
		t.Error(err)
	}
	h.Sights, h.Snapshots, h.Divisions, h.Requests = w.log.Sights, w.log.Snapshots, w.log.Divisions, w.log.Requests

	for _, v := range history.Check(h) {
		t.Errorf("%s: %s", v.Invariant, v.Because)
	}
	told := noticed(h)
	if told == 0 {
		t.Error("I3: nobody would have noticed that replicas were lost")
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%d times: %s", counts[name], name)
	}
	t.Logf("%s for the faults, %s until it had recovered, then still for %s", disturbed.Round(time.Second), recovered.Round(time.Second), h.Still.For.Round(time.Second))
	acknowledged := 0
	for _, w := range h.Writes {
		if w.Acknowledged {
			acknowledged++
		}
	}
	t.Logf("%d writes by users, of them %d acknowledged, and %d moves; %d requests of loops, %d sights, %d looks and %d divisions judged; %d objects in the end",
		len(h.Writes), acknowledged, len(h.Moves), len(h.Requests), len(h.Sights), len(h.Snapshots), len(h.Divisions), len(h.End.Hub))
	t.Logf("all replicas gone at one look would have been noticed at %d of %d", told, min(samples, len(h.Snapshots)))
}

// samples are how many looks noticed doctors.
const samples = 100

// noticed doctors the looks of a history one by one, as if nothing had run, and counts
// those at which that is not in order: at the others users had just deleted or made the
// object, or changes came so fast that it never ran as wanted before.
func noticed(h history.History) int {
	count := 0
	for n := range min(samples, len(h.Snapshots)) {
		i := n * len(h.Snapshots) / min(samples, len(h.Snapshots))
		looks := slices.Clone(h.Snapshots)
		looks[i].Held = nil
		found := history.Check(history.History{Writes: h.Writes, Moves: h.Moves, Policies: h.Policies, Snapshots: looks})
		if slices.ContainsFunc(found, func(v history.Violation) bool { return v.Invariant == "I3" }) {
			count++
		}
	}
	return count
}

// watch keeps what members and the control plane show until the function that it
// returns is called, which returns what went wrong.
func (w *world) watch(t *testing.T) (unwatch func() error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	look := newLooker()
	var group sync.WaitGroup
	failed := make(chan error, 100)
	begin := func(do func() error) { group.Go(func() { failed <- do() }) }
	for _, name := range clusters {
		for _, gvr := range resources {
			begin(func() error { return w.follow(ctx, name, gvr, look) })
		}
	}
	begin(func() error { return w.look(ctx, look) })
	begin(func() error { return w.followBindings(ctx) })
	return func() error {
		stop()
		group.Wait()
		close(failed)
		var err error
		for e := range failed {
			err = errors.Join(err, e)
		}
		return err
	}
}

// settled waits until the fleet has what users wrote, without help.
func (w *world) settled(t *testing.T) {
	t.Helper()
	w.ready(t)
	defer w.explain(t)
	writes, moves := w.log.asked()
	eventually(t, 5*time.Minute, "every cluster has what it is to have", func(ctx context.Context) error {
		w.revive(t, &spared{held: map[any]bool{}})
		end, err := w.end(ctx)
		if err != nil {
			return err
		}
		var all []error
		for _, v := range history.Settled(writes, moves, w.policies, end) {
			all = append(all, errors.New(v.Invariant+": "+v.Because))
		}
		return errors.Join(all...)
	})
}

// judged returns the history with how all of it stands in the end.
func (w *world) judged(t *testing.T, before map[string]history.Use) history.History {
	t.Helper()
	h := history.History{Policies: w.policies, Still: w.atRest(t), AtRest: *still, Secrets: []string{canary}, Programs: w.needs(t, before)}
	h.Writes, h.Moves = w.log.asked()
	var err1, err2 error
	h.End, err1 = w.end(t.Context())
	h.Texts, err2 = w.texts(t.Context())
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for _, text := range h.Texts {
		if strings.Contains(text.Content, "Observed a panic") {
			t.Errorf("a panic: %s", text.Where)
		}
	}
	return h
}

// explain shows what the fleet says of itself, if the test has failed.
func (w *world) explain(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	for _, args := range [][]string{{"status"}, {"get", "clusters", "-o", "wide"}, {"get", "rb", "-n", namespace, "-o", "yaml"}} {
		out, err := exec.Command(fleet.Program("flotilla"), append(args, "--kubeconfig", w.Hub.Kubeconfig)...).CombinedOutput() //nolint:noctx // the test's context may be over
		t.Logf("flotilla %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	for _, p := range append(w.disturbed(), w.Hub) {
		t.Logf("the log of %s is %s", p.Name, p.Log)
	}
}
