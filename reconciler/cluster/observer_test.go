package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/tenure"
	"github.com/flotilla-io/flotilla/reconciler/cluster/capacity"
	"github.com/flotilla-io/flotilla/reconciler/sleepdetector"
)

// scene is a member as an observer meets it.
type scene struct {
	mu      sync.Mutex
	is      outcome
	proof   error
	kinds   []clusterv1alpha1.APIEnablement
	known   []clusterv1alpha1.APIEnablement // to the hub
	missing []string
	fault   error         // of reading the kinds
	hang    time.Duration // before they are read
	trust   bool
	others  int    // members that the hub has, it among them
	silent  bool   // it takes requests, and answers none
	unread  string // of its objects, for long
	probes  int
	looks   int
	reads   int
	changes int

	suspects chan struct{}
	change   *change
	reports  []string
	start    time.Time
	opts     Options
	awake    *sleepdetector.Watch // of the process; nil: one that nobody looks at
}

// observe runs an observer of the scene until the end of the test's bubble.
func observe(t *testing.T, s *scene, wasReady bool) {
	t.Helper()
	o := defaults(s.opts)
	if s.awake == nil {
		s.awake = sleepdetector.New(clock.RealClock{}, asleep)
	}
	s.suspects, s.start = make(chan struct{}, 1), time.Now()
	ob := &observer{
		clock:     clock.RealClock{},
		opts:      o,
		threshold: newThreshold(o.FailureThreshold, o.SuccessThreshold, wasReady, s.start),
		reading:   kindsReading{before: s.known},
		awake:     s.awake,
		report: func(seen observation) {
			s.mu.Lock()
			defer s.mu.Unlock()
			line := fmt.Sprintf("%s %s %d kinds", time.Since(s.start).Round(time.Second), seen.reason, len(seen.kinds))
			if seen.gap != "" {
				line += ": " + seen.gap
			}
			if seen.unread != "" {
				line += ", unread: " + seen.unread
			}
			s.reports = append(s.reports, line)
		},
		subject: s.subject(),
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

// answer is what a request gets, in time or not at all.
func (s *scene) answer(ctx context.Context) outcome {
	s.mu.Lock()
	is, silent := s.is, s.silent
	s.mu.Unlock()
	if silent {
		<-ctx.Done()
		return unreachable
	}
	return is
}

// subject answers as the scene says.
func (s *scene) subject() subject {
	return subject{
		probe: func(ctx context.Context) outcome {
			s.set(func() { s.probes++ })
			return s.answer(ctx)
		},
		alive: func(ctx context.Context) bool {
			s.set(func() { s.looks++ })
			return s.answer(ctx).ready
		},
		prove: func(context.Context) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.trust = s.trust || s.proof == nil
			return s.proof
		},
		fleet:     func() int { return s.others },
		unclaimed: func() string { return "" },
		unread: func(time.Duration) string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.unread
		},
		refused: func() string { return "" },
		trusted: func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.trust
		},
		suspects: s.suspects,
		read: func(ctx context.Context) reading {
			s.mu.Lock()
			hang := s.hang
			s.reads++
			s.mu.Unlock()
			if hang > 0 {
				select {
				case <-ctx.Done():
				case <-time.After(hang):
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			return reading{version: "v1.36.4", kinds: s.kinds, missing: s.missing, err: s.fault}
		},
		changed: func() { s.set(func() { s.changes++ }) },
		follow: func(ctx context.Context, n *change) {
			s.set(func() { s.change = n })
			close(n.first)
			<-ctx.Done()
		},
		sums: func() capacity.Totals { return capacity.Totals{} },
	}
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
		s.expect(t, "0s ClusterReady 1 kinds", "35s ClusterNotReachable 1 kinds", "55s AnswersAgain 1 kinds", "1m25s ClusterReady 1 kinds")
	})
}

// A process that is stopped, or a network that is cut, breaks no connection: nothing but a question that is not answered shows that a member
// is away. It counts as away since that was asked, and is shown so within a second of the threshold.
func TestObserverFindsAMemberThatFallsSilent(t *testing.T) {
	for _, after := range []time.Duration{time.Millisecond, 2500 * time.Millisecond, 9999 * time.Millisecond, 47300 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scene{is: well, kinds: some}
				observe(t, s, false)
				pass(after)
				s.set(func() { s.silent = true })
				pass(30*time.Second - time.Millisecond)
				s.expect(t, "0s ClusterReady 1 kinds")
				pass(time.Second + 2*time.Millisecond)
				s.expect(t, "0s ClusterReady 1 kinds", fmt.Sprintf("%s ClusterNotReachable 1 kinds", (after+30*time.Second+500*time.Millisecond).Round(time.Second)))
			})
		})
	}
}

func TestObserverKeepsAMemberThatIsSilentForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{is: well, kinds: some}
		observe(t, s, true)
		pass(5 * time.Second)
		s.set(func() { s.silent = true })
		pass(29 * time.Second)
		s.set(func() { s.silent = false })
		pass(60 * time.Second)
		s.expect(t, "0s ClusterReady 1 kinds")
	})
}

// Many members are asked less often whether they live, so that all of them cost as much as a hundred do.
func TestObserverLooksAfterManyLessOften(t *testing.T) {
	for others, want := range map[int]int{1: 54, 100: 54, 300: 18, 1000: 0, 5000: 0} {
		t.Run(fmt.Sprint(others), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scene{is: well, kinds: some, others: others}
				observe(t, s, false)
				pass(time.Minute - time.Millisecond)
				s.set(func() {
					if s.looks != want || s.probes != 6 {
						t.Errorf("asked %d times whether it lives, and %d times for all; want %d and 6", s.looks, s.probes, want)
					}
				})
			})
		})
	}
}

func TestObserverKeepsAMemberThatIsAwayForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{is: well, kinds: some}
		observe(t, s, true)
		pass(5 * time.Second)
		s.set(func() { s.is = unreachable })
		s.suspects <- struct{}{}
		pass(20 * time.Second)
		s.set(func() { s.is = well })
		pass(60 * time.Second)
		s.expect(t, "0s ClusterReady 1 kinds")
	})
}

// TestObserverGivesAMemberThatIsBackTime: what could not be read while it was away has to be read first.
func TestObserverGivesAMemberThatIsBackTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{is: well, kinds: some}
		observe(t, s, true)
		for range 5 {
			pass(10 * time.Second)
			s.set(func() { s.is, s.unread = unreachable, "all" })
			s.suspects <- struct{}{}
			pass(10 * time.Second)
			s.set(func() { s.is = well })
			pass(5 * time.Second)
			s.set(func() { s.unread = "" })
		}
		s.expect(t, "0s ClusterReady 1 kinds")
		s.set(func() { s.unread = "secrets" })
		pass(time.Minute)
		s.set(func() { s.is, s.unread = unreachable, "all" })
		s.suspects <- struct{}{}
		pass(10 * time.Second)
		s.set(func() { s.is, s.unread = well, "secrets" })
		pass(10 * time.Second)
		s.expect(t, "0s ClusterReady 1 kinds", "2m35s ClusterReady 1 kinds, unread: secrets")
	})
}

// TestObserverGivesKindsTimeWhateverTheThreshold: one that has just started takes seconds to list them.
func TestObserverGivesKindsTimeWhateverTheThreshold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{is: well, kinds: some, opts: Options{FailureThreshold: 3 * time.Second, SuccessThreshold: 3 * time.Second, Period: time.Second}}
		observe(t, s, true)
		for range 3 {
			pass(10 * time.Second)
			s.set(func() { s.is, s.unread = unreachable, "all" })
			s.suspects <- struct{}{}
			pass(10 * time.Second)
			s.set(func() { s.is = well })
			pass(9 * time.Second)
			s.set(func() { s.unread = "" })
		}
		for _, line := range s.reports {
			if strings.Contains(line, "unread") {
				t.Error(line)
			}
		}
	})
}

// TestObserverFindsAMemberThatDiedBeforeTheStart soon, as nobody knows for how long it has
// been away, and knows it again at once.
func TestObserverFindsAMemberThatDiedBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{is: unreachable, kinds: some}
		observe(t, s, true)
		pass(20 * time.Second)
		s.set(func() { s.is = well })
		pass(10 * time.Second)
		s.expect(t, "0s ClusterReady 0 kinds", "7s ClusterNotReachable 0 kinds", "25s ClusterReady 1 kinds")
	})
}

// TestObserverHoldsNothingAgainstAMember: that an agent does not hold the Lease there yet is no fault of
// the member. That it cannot get one is.
func TestObserverHoldsNothingAgainstAMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{is: well, kinds: some}
		observe(t, s, true)
		pass(5 * time.Second)
		s.set(func() { s.proof, s.trust = fmt.Errorf("%w: %w", tenure.ErrLeaseLost, tenure.ErrOver), false })
		s.suspects <- struct{}{}
		pass(5 * time.Minute)
		s.expect(t, "0s ClusterReady 1 kinds")
		s.set(func() { s.proof = fmt.Errorf("%w: the server is out of space", tenure.ErrOver) })
		pass(40 * time.Second)
		s.set(func() { s.proof = nil })
		pass(40 * time.Second)
		s.expect(t, "0s ClusterReady 1 kinds", "5m36s ClusterNotReady 1 kinds", "5m46s AnswersAgain 1 kinds", "6m16s ClusterReady 1 kinds")
	})
}

// TestObserverSaysNothingBeforeItKnows: the first look may come before the agent holds its Lease.
func TestObserverSaysNothingBeforeItKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{is: well, kinds: some, proof: tenure.ErrLeaseLost}
		observe(t, s, false)
		pass(5 * time.Second)
		s.expect(t)
		s.set(func() { s.proof = nil })
		pass(5 * time.Second)
		s.expect(t, "6s ClusterReady 1 kinds")
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
		s.change.kinds <- struct{}{}
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

func group(name string) clusterv1alpha1.APIEnablement {
	return clusterv1alpha1.APIEnablement{GroupVersion: name}
}

func TestObserverTrustsAMemberThatHasProvedItself(t *testing.T) {
	slow := fmt.Errorf("read the cluster's identity: %w", context.DeadlineExceeded)
	refusal := fmt.Errorf("read the cluster's identity: %w", apierrors.NewUnauthorized("no"))
	for name, tc := range map[string]struct {
		proven bool
		proof  error
		want   []string
	}{
		"and does not say who it is now":      {true, slow, []string{"0s ClusterReady 1 kinds"}},
		"but not one that refuses us":         {true, refusal, []string{"0s ClusterReady 1 kinds", "40s CredentialsRefused 1 kinds"}},
		"nor one that has not said who it is": {false, slow, []string{"0s ClusterNotReady 0 kinds"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scene{is: well, kinds: some}
				if !tc.proven {
					s.proof = tc.proof
				}
				observe(t, s, false)
				s.set(func() { s.proof = tc.proof })
				pass(time.Minute)
				s.expect(t, tc.want...)
			})
		})
	}
}

func TestObserverLooksAfterAMemberThatDoesNotSayWhatItServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{is: well, kinds: some, hang: 20 * time.Second}
		observe(t, s, false)
		pass(15 * time.Second)
		s.expect(t, "5s ClusterReady 0 kinds")
		pass(10 * time.Second)
		s.expect(t, "5s ClusterReady 0 kinds", "20s ClusterReady 1 kinds")
		s.set(func() { s.hang, s.is = time.Hour, unreachable })
		s.suspects <- struct{}{}
		pass(40 * time.Second)
		s.set(func() {
			if last := s.reports[len(s.reports)-1]; !strings.Contains(last, "ClusterNotReachable") {
				t.Errorf("last report: %s", last)
			}
		})
	})
}

func TestObserverReadsAMemberAnewThatWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{is: well, kinds: some}
		observe(t, s, false)
		s.set(func() { s.trust, s.kinds = false, []clusterv1alpha1.APIEnablement{group("v1"), group("v2")} })
		s.suspects <- struct{}{}
		pass(time.Second)
		s.expect(t, "0s ClusterReady 1 kinds", "0s ClusterReady 2 kinds")
	})
}

func TestObserverReportsWhatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{is: well, fault: errors.New("refused")}
		observe(t, s, false)
		gap := "the cluster does not answer when it is asked for its kinds"
		s.expect(t, "0s ClusterReady 0 kinds: "+gap)
		s.set(func() { s.kinds, s.fault = some, nil })
		pass(10 * time.Second)
		s.expect(t, "0s ClusterReady 0 kinds: "+gap, "10s ClusterReady 1 kinds")
		s.set(func() { s.fault = errors.New("refused") })
		s.change.kinds <- struct{}{}
		pass(time.Minute)
		s.expect(t, "0s ClusterReady 0 kinds: "+gap, "10s ClusterReady 1 kinds", "50s ClusterReady 1 kinds: "+gap)
	})
}

func TestObserverKeepsTheKindsOfAGroupThatIsDead(t *testing.T) {
	for name, tc := range map[string]struct {
		known []clusterv1alpha1.APIEnablement
		want  []string
	}{
		"that the hub knows": {
			[]clusterv1alpha1.APIEnablement{group("dead/v1"), group("v1")},
			[]string{"0s ClusterReady 2 kinds", "30s ClusterReady 2 kinds: kinds could not be read of dead/v1", "1m30s ClusterReady 2 kinds"},
		},
		"and tells of one that nobody knows": {
			nil, []string{"0s ClusterReady 1 kinds: kinds could not be read of dead/v1", "1m0s ClusterReady 2 kinds"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scene{is: well, kinds: some, known: tc.known, missing: []string{"dead/v1"}}
				observe(t, s, false)
				pass(55 * time.Second)
				s.set(func() { s.kinds, s.missing = []clusterv1alpha1.APIEnablement{group("dead/v1"), group("v1")}, nil })
				pass(time.Minute)
				s.expect(t, tc.want...)
			})
		})
	}
}

func TestObserverIsNotKeptBusyByHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{is: well, kinds: some}
		observe(t, s, false)
		for range 100 { // in ten seconds
			s.change.kinds <- struct{}{}
			pass(100 * time.Millisecond)
		}
		pass(20 * time.Second)
		s.set(func() {
			if s.reads < 3 || s.reads > 9 {
				t.Errorf("read %d times", s.reads)
			}
		})
	})
}

// TestAFlappingMemberCostsOneReportForEachTurnAtMost: each is a write of its Cluster, which every loop that reads Clusters hears
// of. One that comes up forbids or refuses at first, and one that goes down does so in more ways than one.
func TestAFlappingMemberCostsOneReportForEachTurnAtMost(t *testing.T) {
	for name, tc := range map[string]struct {
		lost     bool
		up, down time.Duration
		most     int
	}{
		"it was ready":                        {false, 10 * time.Second, 10 * time.Second, 1},
		"it was lost":                         {true, 10 * time.Second, 10 * time.Second, 4},
		"it was lost, and is up for longer":   {true, 25 * time.Second, 10 * time.Second, 38},
		"it was lost, and is down for longer": {true, 10 * time.Second, 30 * time.Second, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scene{is: well, kinds: some}
				observe(t, s, true)
				turn := func(to outcome, d time.Duration) {
					s.set(func() { s.is = to })
					select {
					case s.suspects <- struct{}{}:
					default:
					}
					pass(d)
				}
				if tc.lost {
					turn(unreachable, time.Minute)
				}
				turns, began := 1, time.Now()
				for time.Since(began) < 10*time.Minute {
					for _, first := range []outcome{forbidden, unwell} {
						turn(first, 2*time.Second)
						turn(well, tc.up-2*time.Second)
						turn(absent(context.DeadlineExceeded), time.Second)
						turn(unreachable, tc.down-time.Second)
						turns += 2
					}
				}
				s.set(func() {
					t.Logf("%d reports of %d turns", len(s.reports), turns)
					if len(s.reports) > min(tc.most, turns+1) { // the first is how it is found
						t.Errorf("%d reports of %d turns, want %d at most: %s", len(s.reports), turns, tc.most, strings.Join(s.reports, ", "))
					}
				})
			})
		})
	}
}
