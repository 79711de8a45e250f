package replicas

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Trace collects how a division came about.
type Trace struct {
	// Weights by which replicas were divided, by cluster; of clusters that
	// weighed nothing there is no entry.
	Weights map[string]int64
	steps   []string
	prefix  string
}

// String returns what was done, step after step.
func (t *Trace) String() string { return strings.Join(t.steps, "; ") }

// maxNamed is how many clusters a step names; the rest is counted.
const maxNamed = 10

func (t *Trace) note(format string, args ...any) {
	if t != nil {
		t.steps = append(t.steps, t.prefix+fmt.Sprintf(format, args...))
	}
}

// stay notes that replicas are left where they are.
func (t *Trace) stay(n int32) {
	if n == 1 {
		t.note("1 replica stays where it runs")
		return
	}
	t.note("%s stay where they run", count(n))
}

// tier says to which tier the next steps belong.
func (t *Trace) tier(n int) {
	if t == nil {
		return
	}
	t.prefix = "the affinity itself: "
	if n > 0 {
		t.prefix = fmt.Sprintf("overflow %d: ", n)
	}
}

// divided notes that replicas were divided, and what each share got of them;
// weighting is what the weight of a share is called.
func (t *Trace) divided(amount int32, by, weighting string, shares []Share) {
	if t == nil {
		return
	}
	if t.Weights == nil {
		t.Weights = map[string]int64{}
	}
	var sum int64
	var named []Share
	for _, s := range shares {
		if s.Weight > 0 {
			t.Weights[s.Name] = s.Weight
			sum = min(sum, math.MaxInt64-s.Weight) + s.Weight
			named = append(named, s)
		}
	}
	slices.SortFunc(named, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	parts := make([]string, 0, maxNamed+1)
	for i, s := range named {
		if i == maxNamed {
			parts = append(parts, fmt.Sprintf("and %d more", len(named)-maxNamed))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %d (%s %d of %d)", s.Name, s.Count, weighting, s.Weight, sum))
	}
	t.note("%s divided by %s: %s", count(amount), by, strings.Join(parts, ", "))
}

// count returns "1 replica", "2 replicas".
func count(n int32) string {
	if n == 1 {
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", n)
}
