package overview

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
)

// TestAgesAreNoChange: a status that differs in nothing but for how long something has been
// so is the same.
func TestAgesAreNoChange(t *testing.T) {
	at := func(message string) string {
		return string(facts(situation.Fleet{Problems: []situation.Problem{{Kind: "Cluster", Name: "west", Message: message}}}, nil))
	}
	same := at("cluster is not reachable; the state of 2 templates there is unknown for 20s; its agent was last heard 1m5s ago")
	if got := at("cluster is not reachable; the state of 2 templates there is unknown for 3m; its agent was last heard 2m30s ago"); got != same {
		t.Errorf("%s\nis taken for news after\n%s", got, same)
	}
	if got := at("cluster is not reachable; the state of 3 templates there is unknown for 20s; its agent was last heard 1m5s ago"); got == same {
		t.Errorf("3 templates are no news after\n%s", same)
	}
	busy := func(cpu string) string {
		return string(facts(situation.Fleet{Clusters: []situation.Cluster{{Name: "west", CPU: cpu + "/8"}}}, nil))
	}
	if busy("1500m") == busy("500m") {
		t.Error("how much is taken of a cluster's CPU is no news")
	}
}

// TestWatchShowsWhatChanges steps the clock: a look at which nothing has changed
// prints nothing, one at which something has prints all of it.
func TestWatchShowsWhatChanges(t *testing.T) {
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
	now := clocktesting.NewFakeClock(time.Date(2026, 3, 5, 9, 30, 0, 0, time.UTC))
	o := &statusOptions{flags: &fleet.Flags{}, clock: now, interval: 2 * time.Second}
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := o.follow(ctx, hub, in)
		_ = in.Close()
		done <- err
	}()
	lines := bufio.NewScanner(out)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) {
			t.Fatalf("the next line is %q, want %q", lines.Text(), want)
		}
	}
	for _, line := range []string{"There is no cluster yet, and 1 thing is worth a look: clusters 0/0", "", "WORTH A LOOK", "   1  there is no cluster", "      next: "} {
		next(line)
	}
	now.Step(o.interval) // nothing new, and nothing printed: the next line is of what follows
	if err := hub.Create(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}); err != nil {
		t.Fatal(err)
	}
	now.Step(o.interval) // it is taken, or the one before still is to be: either comes after the change
	next("--- 2026-03-05 09:30:0")
	next("1 thing is not ready: clusters 0/1")
	cancel()
	for lines.Scan() { // whatever is left of it
	}
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("follow = %v, want that it was canceled", err)
	}
}
