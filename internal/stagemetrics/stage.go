package stagemetrics

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/loop"
)

// How a stage ends.
const (
	// Success is that what was to be done is done, or was not needed.
	Success = "success"
	// Waiting is that another object, or somebody's answer, is needed first.
	Waiting = "waiting"
	// Failure is everything else. Karmada calls it so.
	Failure = "error"
)

// mostReasons is how many reasons of one stage are counted by name. They are words of
// our own; the bound holds should one ever come from elsewhere.
const mostReasons = 64

// Stage counts one stage: how long it takes, by its result, and how it ends, by result
// and reason. Use NewStage; nil counts nothing.
type Stage struct {
	clock    clock.PassiveClock
	seconds  *prometheus.HistogramVec
	outcomes *prometheus.CounterVec

	mu      sync.Mutex
	reasons map[string]bool
}

// NewStage returns what counts under the two names. Buckets are Lengths if none are given.
func NewStage(registry prometheus.Registerer, c clock.PassiveClock, seconds prometheus.HistogramOpts, outcomes prometheus.CounterOpts) *Stage {
	if seconds.Buckets == nil {
		seconds.Buckets = lengths()
	}
	return &Stage{
		clock:    c,
		seconds:  Registered(registry, prometheus.NewHistogramVec(seconds, []string{"result"})),
		outcomes: Registered(registry, prometheus.NewCounterVec(outcomes, []string{"result", "reason"})),
		reasons:  map[string]bool{},
	}
}

// Begin returns what is to be called at the end: with the error, if there is one, and
// with the reason of a success; empty means Succeeded.
func (s *Stage) Begin() func(reason string, err error) {
	if s == nil {
		return func(string, error) {}
	}
	began := s.clock.Now()
	return func(reason string, err error) {
		switch {
		case errors.Is(err, context.Canceled): // who asked is gone: that says nothing
		case err == nil:
			s.Ended(s.clock.Since(began), Success, reason)
		default:
			e := loop.As(err, "")
			s.Ended(s.clock.Since(began), resultOf(e), e.Reason)
		}
	}
}

func resultOf(e *loop.Error) string {
	if e.Class == loop.ClassWaiting {
		return Waiting
	}
	return Failure
}

// Ended counts one end. Without a reason it is Succeeded, or Error.
func (s *Stage) Ended(took time.Duration, result, reason string) {
	if s == nil {
		return
	}
	s.seconds.WithLabelValues(result).Observe(took.Seconds())
	s.outcomes.WithLabelValues(result, s.name(result, reason)).Inc()
}

// name returns what a reason is counted as.
func (s *Stage) name(result, reason string) string {
	if reason == "" && result == Success {
		return "Succeeded"
	}
	if reason == "" {
		return "Error"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.reasons[reason] {
		if len(s.reasons) >= mostReasons {
			return "Other"
		}
		s.reasons[reason] = true
	}
	return reason
}

// Phases returns phases as one, which counts as the stage.
func Phases[S any](stage *Stage, phases ...loop.Phase[S]) loop.Phase[S] {
	return func(ctx context.Context, s *S) (loop.Next, error) {
		end := stage.Begin()
		next, err := loop.Run(ctx, s, phases...)
		if !errors.Is(ctx.Err(), context.Canceled) {
			end("", err)
		}
		return next, err
	}
}
