package backoff

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var work = client.ObjectKey{Namespace: "karmada-es-eu-1", Name: "web"}

func TestCorrectionsOfAFightSlowDown(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	p := New(clock)
	var waits []time.Duration
	for range 8 {
		due := p.Due(work)
		waits = append(waits, due)
		clock.SetTime(clock.Now().Add(due))
		p.Ran(work)
	}
	s := time.Second
	if diff := cmp.Diff([]time.Duration{0, 0, 0, s, 2 * s, 4 * s, 8 * s, 16 * s}, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	for range 20 {
		p.Ran(work)
	}
	if due := p.Due(work); due != longestPause {
		t.Errorf("waits %s at most, want %s", due, longestPause)
	}
	clock.SetTime(clock.Now().Add(forgiven + s))
	if due := p.Due(work); due != 0 {
		t.Errorf("waits %s after a long peace", due)
	}
}
