package draining_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/draining"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestADrainIsNotSilent: in a pipe, where no progress is shown, a line says within two seconds what is waited for, and
// once more when that is something else, not more often than every ten seconds.
func TestADrainIsNotSilent(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	web, db := placed("apps/v1", "Deployment", "web"), placed("apps/v1", "Deployment", "db")
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(drained(), web, db).Build()
	out := &stamped{clock: clock}
	moves := func(b *workv1alpha2.ResourceBinding, tasks ...workv1alpha2.GracefulEvictionTask) {
		decided(b, "west", placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Drained: []string{"east"}})
		b.Spec.GracefulEvictionTasks = tasks
		if err := hub.Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	w := draining.Watch{Hub: hub, Cluster: "east", Out: out, ErrOut: out, Timeout: time.Minute}
	w.Clock = leaving{steps{clock}, func() {
		switch clock.Since(time.Unix(0, 0)) {
		case 3 * time.Second:
			moves(web, workv1alpha2.GracefulEvictionTask{FromCluster: "east", Producer: workv1alpha2.EvictionProducerDrain})
		case 20 * time.Second:
			moves(web)
		case 21 * time.Second:
			moves(db)
		}
	}}
	if err := w.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "1.5s waiting for 2 of 2: Deployment shop/db: nothing is decided about it yet; Deployment shop/web: nothing is decided about it yet\n" +
		"11s waiting for 2 of 2: Deployment shop/db: nothing is decided about it yet; Deployment shop/web: kept until west is healthy\n" +
		"20.5s Deployment shop/web left east for west\n" +
		"21.5s Deployment shop/db left east for west\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("it says (-want +got):\n%s", diff)
	}
}

// stamped collects what is said, with the time.
type stamped struct {
	strings.Builder
	clock *clocktesting.FakeClock
}

func (s *stamped) Write(p []byte) (int, error) {
	fmt.Fprintf(&s.Builder, "%s %s", s.clock.Since(time.Unix(0, 0)), p)
	return len(p), nil
}

// TestALongLookIsExplained: what takes longer than a moment says so, and what does not says nothing.
func TestALongLookIsExplained(t *testing.T) {
	for name, tc := range map[string]struct {
		takes time.Duration
		want  string
	}{
		"a moment": {time.Second, ""},
		"longer":   {2 * time.Second, "reading what runs where, and the nodes of clusters: one that does not answer is given 30s\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			synctest.Test(t, func(*testing.T) {
				over := draining.Late(&out, clock.RealClock{})
				time.Sleep(tc.takes)
				synctest.Wait()
				over()
			})
			if got := out.String(); got != tc.want {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
		})
	}
}
