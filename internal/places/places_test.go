package places_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/internal/places"
)

// world is two tenants, red and blue, with four places alone and two of them shared.
type world struct {
	t      *testing.T
	clock  *clocktesting.FakeClock
	places *places.Places
}

func newWorld(t *testing.T) *world {
	clock := clocktesting.NewFakeClock(time.Unix(1_000, 0))
	return &world{t: t, clock: clock, places: places.New(places.Options{Alone: 4, Shared: 2, Clock: clock})}
}

// run begins a run of a tenant.
func (w *world) run(tenant string) (context.Context, func()) {
	return w.places.Start(w.t.Context(), tenant)
}

type enter func(context.Context) (context.Context, func(), error)

// taken asks for n places, and returns those that are given at once.
func (w *world) taken(run context.Context, in enter, n int) (leave []func()) {
	w.t.Helper()
	for range n {
		ctx, cancel := context.WithCancel(run)
		cancel() // whoever has to wait gives up
		_, done, err := in(ctx)
		if err == nil {
			leave = append(leave, done)
		} else if !errors.Is(err, context.Canceled) {
			w.t.Fatal(err)
		}
	}
	return leave
}

func TestPlaces(t *testing.T) {
	cases := map[string]struct {
		do   func(w *world, red context.Context) int
		want int
	}{
		"one who is alone has many for requests": {func(w *world, red context.Context) int {
			return len(w.taken(red, places.Request, 9))
		}, 4},
		"to compute in there are few, also for one who is alone": {func(w *world, red context.Context) int {
			return len(w.taken(red, places.Compute, 9))
		}, 2},
		"while another has a run there are few": {func(w *world, red context.Context) int {
			w.run("blue")
			return len(w.taken(red, places.Request, 9))
		}, 2},
		"a run that has ended a moment ago counts": {func(w *world, red context.Context) int {
			_, end := w.run("blue")
			end()
			w.clock.SetTime(w.clock.Now().Add(999 * time.Millisecond))
			return len(w.taken(red, places.Request, 9))
		}, 2},
		"one that has ended before that does not": {func(w *world, red context.Context) int {
			_, end := w.run("blue")
			end()
			w.clock.SetTime(w.clock.Now().Add(time.Second))
			return len(w.taken(red, places.Request, 9))
		}, 4},
		"another has its own, whatever one has taken": {func(w *world, red context.Context) int {
			w.taken(red, places.Request, 9)
			blue, _ := w.run("blue")
			return len(w.taken(blue, places.Request, 9))
		}, 2},
		"what was taken alone counts until it is left": {func(w *world, red context.Context) int {
			leave := w.taken(red, places.Request, 4)
			w.run("blue")
			leave[0]()
			leave[1]()
			return len(w.taken(red, places.Request, 9))
		}, 0},
		"what one who is alone computes leaves its requests alone": {func(w *world, red context.Context) int {
			w.taken(red, places.Compute, 9)
			return len(w.taken(red, places.Request, 9))
		}, 4},
		"what one computes counts for its requests while there are others": {func(w *world, red context.Context) int {
			w.run("blue")
			w.taken(red, places.Compute, 1)
			return len(w.taken(red, places.Request, 9))
		}, 1},
		"all runs of one share what there is": {func(w *world, red context.Context) int {
			w.taken(red, places.Compute, 1)
			again, _ := w.run("red")
			return len(w.taken(again, places.Compute, 9))
		}, 1},
		"without a run there is no limit": {func(w *world, _ context.Context) int {
			return len(w.taken(w.t.Context(), places.Compute, 9))
		}, 9},
		"who has a place goes on in it": {func(w *world, red context.Context) int {
			in, _, err := places.Compute(red)
			if err != nil {
				w.t.Fatal(err)
			}
			return len(w.taken(in, places.Request, 9))
		}, 9},
		"who waits outside has none": {func(w *world, red context.Context) (n int) {
			in, _, err := places.Compute(red)
			if err != nil {
				w.t.Fatal(err)
			}
			places.Outside(in, func(context.Context) {
				leave := w.taken(red, places.Compute, 9)
				n = len(leave)
				leave[0]()
			})
			return n
		}, 2},
		"whoever comes back from outside has one again": {func(w *world, red context.Context) int {
			in, _, err := places.Compute(red)
			if err != nil {
				w.t.Fatal(err)
			}
			places.Outside(in, func(context.Context) {})
			return len(w.taken(red, places.Compute, 9))
		}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			red, end := w.run("red")
			defer end()
			if diff := cmp.Diff(tc.want, tc.do(w, red)); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFirstComeFirstServed: while places are few, requests do not pass by one that
// waits to compute.
func TestFirstComeFirstServed(t *testing.T) {
	w := newWorld(t)
	w.run("blue")
	red, end := w.run("red")
	defer end()
	leave := w.taken(red, places.Request, 2)
	came := make(chan string, 2)
	for i, asks := range []struct {
		name string
		in   enter
	}{{"to compute", places.Compute}, {"to ask", places.Request}} {
		go func() {
			_, _, err := asks.in(red)
			came <- fmt.Sprint(asks.name, err)
		}()
		for places.Waiting(w.places, "red") <= i {
			runtime.Gosched()
		}
	}
	leave[0]()
	first := <-came
	leave[1]()
	if diff := cmp.Diff([]string{"to compute<nil>", "to ask<nil>"}, []string{first, <-came}); diff != "" {
		t.Errorf("who came when (-want +got):\n%s", diff)
	}
}

// TestNothingIsKept: tenants that have no runs are forgotten.
func TestNothingIsKept(t *testing.T) {
	w := newWorld(t)
	for _, tenant := range []string{"red", "green"} {
		_, end := w.run(tenant)
		end()
	}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	_, end := w.run("blue")
	defer end()
	if diff := cmp.Diff([]string{"blue"}, places.Tenants(w.places)); diff != "" {
		t.Errorf("tenants that are known (-want +got):\n%s", diff)
	}
}

// TestWhoHasHadMuchRests: while others have runs, a tenant has its places without a pause
// for a while, and then for half of the time.
func TestWhoHasHadMuchRests(t *testing.T) {
	w := newWorld(t)
	w.run("blue")
	red, end := w.run("red")
	defer end()
	work := func(much time.Duration) {
		t.Helper()
		for _, leave := range w.taken(red, places.Request, 2) {
			defer leave()
		}
		w.clock.Step(much)
	}
	given := func() int {
		t.Helper()
		leave := w.taken(red, places.Request, 9)
		for _, done := range leave {
			done()
		}
		return len(leave)
	}
	steps := []struct {
		name string
		do   func()
		want int
	}{
		{"at first", func() {}, 2},
		{"two places for less than 4 s use less than half of that up", func() { work(3900 * time.Millisecond) }, 2},
		{"a bit more is too much", func() { work(200 * time.Millisecond) }, 0},
		{"a moment later", func() { w.clock.Step(10 * time.Millisecond) }, 0},
		{"after a rest", func() { w.clock.Step(time.Second) }, 2},
		{"an hour in one piece", func() { work(time.Hour) }, 0},
		{"is not held against anybody for longer than 4 s", func() { w.clock.Step(4*time.Second + time.Millisecond) }, 2},
	}
	for _, step := range steps {
		step.do()
		if got := given(); got != step.want {
			t.Errorf("%s: %d places, want %d", step.name, got, step.want)
		}
	}

	work(time.Hour)
	came := make(chan error, 1)
	go func() {
		_, _, err := places.Request(red)
		came <- err
	}()
	for places.Waiting(w.places, "red") == 0 {
		runtime.Gosched()
	}
	w.clock.Step(4*time.Second + time.Millisecond)
	if err := <-came; err != nil {
		t.Error(err)
	}
}

// TestWhoIsAloneDoesNotRest: nobody has use for what one who is alone leaves.
func TestWhoIsAloneDoesNotRest(t *testing.T) {
	w := newWorld(t)
	red, end := w.run("red")
	defer end()
	for _, leave := range w.taken(red, places.Request, 4) {
		defer leave()
	}
	w.clock.Step(time.Hour)
	if got := len(w.taken(red, places.Compute, 1)); got != 1 {
		t.Errorf("%d places, want 1", got)
	}
}

// TestWhoComputesLetsOthersRun: others need not wait until Go interrupts it.
func TestWhoComputesLetsOthersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	ctx, end := places.New(places.Options{}).Start(t.Context(), "a")
	defer end()
	ctx, leave, err := places.Compute(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	var ran atomic.Bool
	go ran.Store(true)
	// Once in a while Go goes on with the one who let others run.
	for range 3 {
		err = errors.Join(err, ctx.Err())
	}
	if err != nil || !ran.Load() {
		t.Errorf("Err = %v, and another one ran: %t", err, ran.Load())
	}
}
