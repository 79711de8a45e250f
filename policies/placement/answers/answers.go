// Package answers keeps with a decision what clusters answered about what fits in them, for those who cannot ask them.
//
// In go the answers by which a binding was decided, and how much of it ran in each cluster before; out come those that its
// record names, and from these, later, the answers as they count then: less what it was given there since. The package asks
// nobody, and decides nothing.
package answers

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/estimate"
)

// MaxAge is how long an answer may be used for another decision. After that, what the cluster reports is the better estimate.
const MaxAge = 10 * time.Minute

// mostClusters is how many clusters a record names.
const mostClusters = 16

// Asked is what came of asking clusters what fits in them, as the record of a decision has it.
type Asked struct {
	// Stale are the clusters that did not say what fits there, so that what they said
	// last counted; at most 16, sorted by name. Nil: there were none.
	Stale []estimate.Stale `json:"stale,omitempty"`
	// Estimates is what was answered about what fits in clusters, for those who cannot ask. Nil: nobody was asked.
	Estimates *Record `json:"room,omitempty"`
}

// Record holds the answers by which a decision was made.
type Record struct {
	// At is when, in whole seconds.
	At metav1.Time `json:"at"`
	// Clusters that answered with a bound, sorted by name; at most 16, those that were chosen before all others.
	Clusters []Answer `json:"clusters,omitempty"`
	// Unreported are the clusters that report their nodes, but not what was asked, so that what they report counted; sorted by
	// name, at most 16.
	Unreported []Unreported `json:"untold,omitempty"`
}

// Unreported is one cluster that could not answer.
type Unreported struct {
	Cluster string `json:"cluster"`
	// What it does not report, such as "the label zone".
	What string `json:"what"`
}

// Answer is what was answered about one cluster.
type Answer struct {
	Cluster string `json:"cluster"`
	// Takes is how many replicas, or sets of components, it takes in all: those that ran there before included.
	Takes int64 `json:"takes"`
	// Age is how old the answer was, such as 2m0s; empty: it was given for this decision.
	Age string `json:"age,omitempty"`
	// By is who counted; empty: the control plane, on the nodes that it sees.
	By estimate.Source `json:"by,omitempty"`
}

// Of returns what a record names of the answers, and of what clusters did not report; nil where there is nothing. Held is how much ran in each cluster when they
// were given, and chosen are the clusters that it runs in since.
func Of(answers map[string]estimate.Answer, unreported map[string]string, assigned map[string]int32, chosen []string, now time.Time) *Record {
	out := &Record{At: metav1.NewTime(now.UTC().Truncate(time.Second))}
	for name, a := range answers {
		if !a.Bounded() {
			continue
		}
		e := Answer{Cluster: name, Takes: int64(a.Fits) + int64(max(assigned[name], 0)), By: a.By}
		if a.Age > 0 {
			e.Age = max(a.Age.Round(time.Second), time.Second).String()
		}
		out.Clusters = append(out.Clusters, e)
	}
	for _, name := range slices.Sorted(maps.Keys(unreported)) {
		out.Unreported = append(out.Unreported, Unreported{name, unreported[name]})
	}
	out.Unreported = out.Unreported[:min(len(out.Unreported), mostClusters)]
	if len(out.Clusters) == 0 && len(out.Unreported) == 0 {
		return nil
	}
	rank := func(s Answer) int {
		switch _, holds := assigned[s.Cluster]; {
		case slices.Contains(chosen, s.Cluster):
			return 0
		case holds:
			return 1
		default:
			return 2
		}
	}
	byName := func(a, b Answer) int { return cmp.Compare(a.Cluster, b.Cluster) }
	slices.SortFunc(out.Clusters, func(a, b Answer) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), byName(a, b)) })
	out.Clusters = out.Clusters[:min(len(out.Clusters), mostClusters)]
	slices.SortFunc(out.Clusters, byName)
	return out
}

// Now returns the answers as they count where so much of the template runs in each cluster today. A nil r has none. What cannot
// be read counts as not reported.
func (r *Record) Now(assigned map[string]int32, now time.Time) map[string]estimate.Answer {
	if r == nil {
		return nil
	}
	out := map[string]estimate.Answer{}
	for _, s := range r.Clusters {
		age := max(now.Sub(r.At.Time), 1)
		if s.Age != "" {
			then, err := time.ParseDuration(s.Age)
			if err != nil {
				continue
			}
			age += then
		}
		fits := min(max(s.Takes-int64(max(assigned[s.Cluster], 0)), -(1<<31-2)), 1<<31-2) // less than no bound
		out[s.Cluster] = estimate.Answer{Fits: int32(max(fits, 0)), Excess: int32(max(-fits, 0)), Age: age, By: s.By}
	}
	return out
}

// Why returns, for each cluster that could not answer, what it did not report, by its name.
func (a *Record) Why() map[string]string {
	if a == nil {
		return nil
	}
	out := map[string]string{}
	for _, u := range a.Unreported {
		out[u.Cluster] = u.What
	}
	return out
}
