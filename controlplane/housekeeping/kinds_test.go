package housekeeping

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	testingclock "k8s.io/utils/clock/testing"
)

// countingServer answers discovery with its fields and counts how often it was asked.
type countingServer struct {
	discovery.ServerResourcesInterface
	asked int
	err   error
}

func (s *countingServer) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	s.asked++
	return []*metav1.APIResourceList{{GroupVersion: "v1"}}, s.err
}

func TestKindsAskTheServer(t *testing.T) {
	type step struct {
		after   time.Duration
		changed bool
		fails   bool
		asked   int // in total, once the step's question is answered
	}
	cases := map[string][]step{
		"once while nothing changes":            {{asked: 1}, {after: time.Second, asked: 1}, {after: 28 * time.Second, asked: 1}},
		"again when the answer is old":          {{asked: 1}, {after: kindsMaxAge, asked: 2}, {after: time.Second, asked: 2}},
		"each time just after a kind changed":   {{asked: 1}, {after: time.Second, changed: true, asked: 2}, {after: time.Second, asked: 3}, {after: kindsRecheck, asked: 3}},
		"each time until it has a whole answer": {{fails: true, asked: 1}, {after: time.Second, fails: true, asked: 2}, {after: time.Second, asked: 3}, {after: time.Second, asked: 3}},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			server, clock := &countingServer{}, testingclock.NewFakePassiveClock(time.Unix(1_000_000, 0))
			kinds := newKinds(server, clock, func(schema.GroupVersionResource) {})
			for i, s := range steps {
				clock.SetTime(clock.Now().Add(s.after))
				if s.changed {
					kinds.changed()
				}
				server.err = nil
				if s.fails {
					server.err = errors.New("a group does not answer")
				}
				got, err := kinds.ServerPreferredResources()
				if len(got) != 1 || (err != nil) != s.fails {
					t.Errorf("step %d: answer %v, error %v", i, got, err)
				}
				if server.asked != s.asked {
					t.Errorf("step %d: the server was asked %d times, want %d", i, server.asked, s.asked)
				}
			}
		})
	}
}
