package estimators_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/estimators"
)

// told is what was told on Clusters: the reason and the message.
type told struct {
	mu     sync.Mutex
	events []string
}

func (r *told) Event(obj runtime.Object, _, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf("%s %s: %s", obj.(client.Object).GetName(), reason, message))
}

// TestThatThereAreNoAnswersIsTold, once, and that there are some again: else the room by which something was placed would be another one
// than the user believes, and nobody knew.
func TestThatThereAreNoAnswersIsTold(t *testing.T) {
	const instead = "m1 EstimatorUnavailable: Its estimator does not say what fits, so that what the cluster said or reports itself counts: "
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	for name, tc := range map[string]struct {
		server *foreign
		opts   estimators.Options
		nobody bool
		asks   int
		want   string // what the only Event begins with, and, behind a |, contains
	}{
		"it answers":                {server: &foreign{answer: varint(1, 3)}, asks: 5},
		"it speaks no TLS":          {server: &foreign{}, opts: estimators.Options{Files: estimators.Files{SkipVerify: true}}, asks: 5, want: instead + "|handshake"},
		"nobody is there":           {nobody: true, asks: 5, want: instead + "|refused"},
		"it answers less than none": {server: &foreign{answer: varint(1, 1<<64-1)}, asks: 5, want: instead + "|it answers -1"},
		"it is late twice":          {server: &foreign{hang: true}, opts: estimators.Options{Timeout: 100 * time.Millisecond}, asks: 2},
		"it is late each time":      {server: &foreign{hang: true}, opts: estimators.Options{Timeout: 100 * time.Millisecond}, asks: 5, want: instead + "|deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			events, port := &told{}, 0
			if tc.nobody {
				port = nobody(t)
			} else {
				port = tc.server.serve(t)
			}
			tc.opts.Events, tc.opts.Clock = events, clock
			e := asking(t, tc.opts, []string{"m1"}, service("m1", port))
			for range tc.asks {
				_, _ = e.MaxReplicas(t.Context(), "m1", nil, nil)
			}
			begins, contains, _ := strings.Cut(tc.want, "|")
			switch {
			case tc.want == "" && len(events.events) > 0:
				t.Errorf("told %q", events.events)
			case tc.want != "" && (len(events.events) != 1 || !strings.HasPrefix(events.events[0], begins) || !strings.Contains(events.events[0], contains)):
				t.Errorf("told %q, want one that begins with %q and has %q", events.events, begins, contains)
			}
		})
	}
}

// TestThatThereAreAnswersAgainIsTold once.
func TestThatThereAreAnswersAgainIsTold(t *testing.T) {
	events, server := &told{}, &foreign{answer: varint(1, 1<<64-1)}
	e := asking(t, estimators.Options{Events: events}, []string{"m1"}, service("m1", server.serve(t)))
	ask := func() { _, _ = e.MaxReplicas(t.Context(), "m1", nil, nil) }
	ask()
	server.mu.Lock()
	server.answer = varint(1, 3)
	server.mu.Unlock()
	ask()
	ask()
	want := []string{
		"m1 EstimatorUnavailable: Its estimator does not say what fits, so that what the cluster said or reports itself counts: it answers -1: it does not know",
		"m1 EstimatorAvailable: Its estimator says what fits again",
	}
	if diff := cmp.Diff(want, events.events); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
