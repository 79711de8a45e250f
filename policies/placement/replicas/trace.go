package replicas

import (
	"fmt"
	"slices"
	"strings"
)

// Trace collects how a division came about.
type Trace struct {
	// Weights by which replicas were divided, by cluster; of clusters that
	// weighed nothing there is no entry.
	Weights map[string]int64
	steps   []string
}

// Words returns what was done, step after step.
func (t *Trace) Words() string { return strings.Join(t.steps, "; ") }

// maxNamed is how many clusters a step names; the rest is counted.
const maxNamed = 10

func (t *Trace) say(format string, args ...any) {
	if t != nil {
		t.steps = append(t.steps, fmt.Sprintf(format, args...))
	}
}

// divided notes that amount was divided, and what each share got of it.
func (t *Trace) divided(amount int32, by string, shares []Share) {
	if t == nil {
		return
	}
	var sum int64
	var named []Share
	for _, s := range shares {
		if s.Weight <= 0 {
			continue
		}
		if t.Weights == nil {
			t.Weights = map[string]int64{}
		}
		t.Weights[s.Name] = s.Weight
		sum = min(sum+min(s.Weight, maxWeight), 1<<62)
		named = append(named, s)
	}
	slices.SortFunc(named, func(a, b Share) int { return strings.Compare(a.Name, b.Name) })
	parts := make([]string, 0, maxNamed+1)
	for i, s := range named {
		if i == maxNamed {
			parts = append(parts, fmt.Sprintf("and %d more", len(named)-maxNamed))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %d (%d of %d)", s.Name, s.Count, min(s.Weight, maxWeight), sum))
	}
	t.say("%d divided by %s: %s", amount, by, strings.Join(parts, ", "))
}
