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
func TestChaos(t *testing.T) { disturbed(t, startApart) }

// TestChaosOfReplicas does the same with several control planes on one store.
func TestChaosOfReplicas(t *testing.T) { disturbed(t, startReplicas) }

func disturbed(t *testing.T, start func(t *testing.T) *world) {
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
	w.source(t)
	w.awaitRest(t)
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
	w.awaitRest(t)
	recovered := time.Since(begun) - disturbed
	h := w.judged(t, before)
	if err := unwatch(); err != nil {
		t.Error(err)
	}
	h.Observations, h.Snapshots, h.Divisions, h.Requests = w.log.Observations, w.log.Snapshots, w.log.Divisions, w.log.Requests

	for _, v := range history.Check(h) {
		t.Errorf("%s: %s", v.Invariant, v.Because)
		reportOf(t, h, v, begun)
	}
	judged := history.Judged(h)
	reported, of := noticed(h, judged)
	if reported == 0 {
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
	t.Logf("%d writes by users, of them %d acknowledged, and %d moves; %d requests of loops, %d observations, %d looks and %d divisions judged; %d objects in the end",
		len(h.Writes), acknowledged, len(h.Moves), len(h.Requests), len(h.Observations), len(h.Snapshots), len(h.Divisions), len(h.End.Hub))
	t.Logf("%d texts were searched for %d secrets", len(h.Texts), len(h.Secrets))
	t.Logf("I3 has judged %d of %d looks; all replicas gone at one of them would have been noticed at %d of %d", len(judged), len(h.Snapshots), reported, of)
}

// reportOf logs what was asked and seen of the object that a violation is about, by the time
// since the faults began.
func reportOf(t *testing.T, h history.History, v history.Violation, begun time.Time) {
	t.Helper()
	about := func(o history.Object) bool { return strings.Contains(v.Because+" ", string(o)+" ") }
	for _, w := range h.Writes {
		if about(w.Object) {
			t.Logf("  %9.3fs asked: version %d, deleted %t, acknowledged %t", w.Begun.Sub(begun).Seconds(), w.Version, w.Deleted, w.Acknowledged)
		}
	}
	for _, s := range h.Observations {
		if about(s.Object) {
			t.Logf("  %9.3fs seen: version %d in %s, deleted %t, %s", s.At.Sub(begun).Seconds(), s.Version, s.Cluster, s.Deleted, s.UID)
		}
	}
}

// samples are how many looks noticed doctors.
const samples = 100

// noticed doctors some of the looks that were judged, one by one, as if nothing had run,
// and counts those at which that is not in order, of how many.
func noticed(h history.History, judged []int) (reported, of int) {
	of = min(samples, len(judged))
	for n := range of {
		i := judged[n*len(judged)/of]
		snapshots := slices.Clone(h.Snapshots)
		snapshots[i].ByCluster = nil
		found := history.Check(history.History{Writes: h.Writes, Moves: h.Moves, Policies: h.Policies, Snapshots: snapshots})
		if slices.ContainsFunc(found, func(v history.Violation) bool { return v.Invariant == "I3" }) {
			reported++
		}
	}
	return reported, of
}

// watch keeps what members and the control plane show until the function that it
// returns is called, which returns what went wrong.
func (w *world) watch(t *testing.T) (unwatch func() error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	look := newLookers(users)
	var group sync.WaitGroup
	failed := make(chan error, 100)
	begin := func(do func() error) { group.Go(func() { failed <- do() }) }
	for _, name := range clusters {
		for _, gvr := range resources {
			begin(func() error { return w.follow(ctx, name, gvr, look) })
		}
	}
	for _, l := range look {
		begin(func() error { return w.observe(ctx, l) })
	}
	begin(func() error { return w.followBindings(ctx) })
	begin(func() error { return w.followClusters(ctx) })
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

// awaitRest waits until the fleet has what users wrote, without help.
func (w *world) awaitRest(t *testing.T) {
	t.Helper()
	w.ready(t)
	defer w.explain(t)
	eventually(t, 5*time.Minute, "every cluster has what it is to have", func(ctx context.Context) error {
		w.revive(t, &spared{held: map[any]bool{}})
		h := w.log.asked()
		var err error
		if h.End, err = w.end(ctx); err != nil {
			return err
		}
		h.Policies = w.policies
		var all []error
		for _, v := range history.AtRest(h) {
			all = append(all, errors.New(v.Invariant+": "+v.Because))
		}
		return errors.Join(all...)
	})
}

// judged returns the history with how all of it stands in the end.
func (w *world) judged(t *testing.T, before map[string]history.Use) history.History {
	t.Helper()
	h := w.log.asked()
	h.Policies, h.Still, h.AtRest, h.Programs = w.policies, w.atRest(t), *still, w.needs(t, before)
	var err1, err2, err3 error
	h.End, err1 = w.end(t.Context())
	h.Texts, err2 = w.texts(t.Context(), h.End)
	h.Secrets, err3 = w.secrets(t.Context())
	if err := errors.Join(err1, err2, err3); err != nil {
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
		out, err := exec.Command(fleet.Program("flotilla"), append(args, "--kubeconfig", w.kubeconfig)...).CombinedOutput() //nolint:noctx // the test's context may be over
		t.Logf("flotilla %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	for _, p := range w.programs() {
		t.Logf("the log of %s is %s", p.Name, p.Log)
	}
}
