package estimate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Answer is how many units fit in one cluster, by who sees its nodes.
type Answer struct {
	Fits int32
	// Age is how old the answer is; zero: it was given just now.
	Age time.Duration
	// By is who counted, for those who are told.
	By Source
	// Excess is how many units run there that it had no room for, so that Fits is 0.
	Excess int32
}

// Source is who counts what fits in a cluster.
type Source string

// The control plane counts on the nodes that it sees itself. Otherwise an estimator, or what the agent of the cluster tells of them, counts.
const (
	ByNodes     Source = ""
	ByEstimator Source = "estimator"
	ByAgent     Source = "agent"
)

// String is who that is: "nodes", "estimator" or "agent".
func (s Source) String() string {
	if s == ByNodes {
		return "nodes"
	}
	return string(s)
}

// Bounded reports whether the answer bounds anything: MaxInt32 does not.
func (a Answer) Bounded() bool { return a.Fits < math.MaxInt32 }

// ErrAbsurd says that an answer cannot be true.
var ErrAbsurd = errors.New("the answer cannot be true")

// absurd is how many times the pods of a cluster an answer may be: what it reports may
// be older than its last nodes.
const absurd = 10

// Plausible errs with ErrAbsurd where so many units cannot fit in a cluster that takes so
// many pods in all; zero or less: that is not known.
func Plausible(fits int32, pods int64) error {
	switch {
	case fits < 0:
		return fmt.Errorf("%w: %d", ErrAbsurd, fits)
	case fits == math.MaxInt32, pods <= 0, int64(fits) <= Times(pods, absurd):
		return nil
	default:
		return fmt.Errorf("%w: %d, where there are places for %d pods", ErrAbsurd, fits, pods)
	}
}

// Units returns how many units of the need the load takes as much as, counted up.
func (n Need) Units(l Load) int64 {
	var most int64
	for _, want := range n.unit {
		q := l.Resources[want.name]
		if taken := Amount(want.name, &q); want.n > 0 && taken > 0 {
			most = max(most, taken/want.n+min(taken%want.n, 1))
		}
	}
	return most
}

// Since returns the answer as it counts after a while in which more was assumed: the
// load is what is reserved in the cluster beyond what was when the answer was given.
func (a Answer) Since(while time.Duration, n Need, more Load) Answer {
	if a.Bounded() {
		a.Fits = int32(max(int64(a.Fits)-n.Units(more), 0))
	}
	a.Age += while
	return a
}

// Minus returns what l takes beyond other; never less than nothing.
func (l Load) Minus(other Load) Load {
	out := l.Times(1)
	for name, q := range other.Resources {
		if left, ok := out.Resources[name]; ok {
			if left.Sub(q); left.Sign() < 0 {
				delete(out.Resources, name)
				continue
			}
			out.Resources[name] = left
		}
	}
	return out
}

// Stale is what a cluster that does not say what fits there has reported last.
type Stale struct {
	Cluster string `json:"cluster"`
	// Fits is what counted: what it reported, less what was placed there since.
	Fits int32 `json:"fits"`
	// Age is how old that is, such as 2m0s.
	Age string `json:"age"`
}

// mostStale is how many of them a record names.
const mostStale = 16

// StaleIn returns the answers that are old, by the name of their cluster, sorted; not more
// than mostStale.
func StaleIn(answers map[string]Answer) []Stale {
	var out []Stale
	for name, a := range answers {
		if a.Age > 0 {
			out = append(out, Stale{Cluster: name, Fits: a.Fits, Age: max(a.Age.Round(time.Second), time.Second).String()})
		}
	}
	slices.SortFunc(out, func(a, b Stale) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out[:min(len(out), mostStale)]
}
