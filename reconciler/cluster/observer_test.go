package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
)

// scene is a member as an observer meets it.
type scene struct {
	mu      sync.Mutex
	is      outcome
	proof   error
	kinds   []clusterv1alpha1.APIEnablement
	probes  int
	reads   int
	changes int

	suspects chan struct{}
	news     *news
	reports  []string
	start    time.Time
}

// observe runs an observer of the scene until the end of the test's bubble.
func observe(t *testing.T, s *scene, wasReady bool) {
	t.Helper()
	o := defaults(Options{})
	s.suspects, s.start = make(chan struct{}, 1), time.Now()
	ob := &observer{
		clock:     clock.RealClock{},
		options:   o,
		threshold: newThreshold(o.FailureThreshold, o.SuccessThreshold, wasReady),
		report: func(seen observation) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reports = append(s.reports, fmt.Sprintf("%s %s %d kinds", time.Since(s.start).Round(time.Second), seen.reason, len(seen.kinds)))
		},
		probe: func(context.Context) outcome {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.probes++
			return s.is
		},
		prove: func(context.Context) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.proof
		},
		suspects: s.suspects,
		read: func(context.Context) (string, []clusterv1alpha1.APIEnablement, bool, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reads++
			return "v1.36.4", s.kinds, false, nil
		},
		changed: func() { s.set(func() { s.changes++ }) },
		follow: func(ctx context.Context, n *news) {
			s.set(func() { s.news = n })
			close(n.first)
			<-ctx.Done()
		},
		sums: func() (*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary) { return nil, nil },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ob.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	synctest.Wait()
}

// set changes or reads the scene while the observer is at it.
func (s *scene) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// pass lets the bubble's time go by.
func pass(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
	synctest.Wait()
}

func (s *scene) expect(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(want, s.reports); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

var some = []clusterv1alpha1.APIEnablement{{GroupVersion: "v1"}}

func TestObserverReportsOnceWhileNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{is: well, kinds: some}
		observe(t, s, false)
		pass(9 * time.Minute)
		s.expect(t, "0s ClusterReady 1 kinds")
		s.set(func() {
			if s.reads != 1 || s.probes != 55 {
				t.Errorf("read %d times and asked %d times, want 1 and 55", s.reads, s.probes)
			}
		})
		pass(2 * time.Minute)
		s.set(func() {
			if s.reads != 2 {
				t.Errorf("read %d times, want a slow resync", s.reads)
			}
		})
	})
}

func TestObserverTurnsAfterTheThreshold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{is: well, kinds: some}
		observe(t, s, false)
		pass(5 * time.Second)
		s.set(func() { s.is = unreachable })
		s.suspects <- struct{}{}
		pass(40 * time.Second)
		s.set(func() { s.is = well })
		pass(60 * time.Second)
		s.expect(t, "0s ClusterReady 1 kinds", "40s ClusterNotReachable 1 kinds", "1m20s ClusterReady 1 kinds")
	})
}

func TestObserverKeepsAMemberThatIsAwayForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{is: unreachable, kinds: some}
		observe(t, s, true)
		pass(20 * time.Second)
		s.set(func() { s.is = well })
		pass(10 * time.Second)
		s.expect(t, "0s ClusterReady 0 kinds", "25s ClusterReady 1 kinds")
	})
}

func TestObserverRefusesAnotherClusterAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{is: well, kinds: some}
		observe(t, s, true)
		s.set(func() { s.proof = fmt.Errorf("%w: it was registered as a and answers as b", members.ErrOtherCluster) })
		pass(10 * time.Second)
		s.expect(t, "0s ClusterReady 1 kinds", "10s IdentityMismatch 1 kinds")
	})
}

func TestObserverReadsKindsWhenTheyMayHaveChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{is: well, kinds: some}
		observe(t, s, false)
		s.set(func() { s.kinds = append(some[:1:1], clusterv1alpha1.APIEnablement{GroupVersion: "x/v1"}) })
		s.news.kinds <- struct{}{}
		pass(time.Second)
		s.expect(t, "0s ClusterReady 1 kinds", "0s ClusterReady 2 kinds")
		pass(8 * time.Second)
		s.set(func() {
			if s.reads != 3 || s.changes != 1 {
				t.Errorf("read %d times and told %d changes, want once more when discovery has followed", s.reads, s.changes)
			}
		})
	})
}

func TestObserverTakesAFaultOfTheProofForAFaultOfTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{is: well, kinds: some, proof: errors.New("connection reset")}
		observe(t, s, false)
		s.expect(t, "0s ClusterNotReachable 0 kinds")
	})
}
