// Package departing tells which templates failover is about to move off clusters.
//
// In go bindings and the clusters; out comes, for each cluster that is lost, how many templates are to leave it, and when, and of a
// template that is unhealthy in one when it is to leave that.
// It decides nothing: policies/failover says by the rules of each decision when that is due. What its placement means nowhere
// else is counted apart, like what was placed while failover was off; what finds no room elsewhere by then is counted as leaving.
package departing

import (
	"fmt"
	"slices"
	"time"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Templates are those that are to leave clusters, by cluster.
type Templates map[string]*count

type count struct {
	templates   int // with another place
	nowhere     int
	stay        int // as failover was off when they were placed
	first, last time.Time
}

// From adds a template, if it is to leave clusters of a fleet that are silent.
func (t *Templates) From(b workv1alpha2.Binding, fleet []*clusterv1alpha1.Cluster, silent rollup.Silences, now time.Time) {
	for _, c := range fleet {
		if !silent.Has(c.Name) {
			continue
		}
		if *t == nil {
			*t = Templates{}
		}
		t.Take(b, c, fleet, now)
	}
}

// Take adds a template by its binding, if it is to leave the cluster of a fleet later than now.
func (t Templates) Take(b workv1alpha2.Binding, cluster *clusterv1alpha1.Cluster, fleet []*clusterv1alpha1.Cluster, now time.Time) {
	spec := b.BindingSpec()
	if spec.Placement == nil || b.GetDeletionTimestamp() != nil || !isPlaced(spec, cluster.Name) {
		return
	}
	record, decided := placement.RecordOf(b)
	if decided && record.Rules == nil {
		t.of(cluster.Name).stay++
		return
	}
	rules, _ := record.Rules.Rules()
	leaving, leaves := rules.Leaves(cluster, spec.Placement.ClusterTolerations, now)
	if !leaves || leaving.Stays != "" || leaving.At == nil || !leaving.At.After(now) {
		return
	}
	at, of := leaving.At.Time, t.of(cluster.Name)
	if !elsewhere(spec.Placement, cluster.Name, fleet) {
		of.nowhere++
		return
	}
	of.templates++
	if of.first.IsZero() || at.Before(of.first) {
		of.first = at
	}
	if at.After(of.last) {
		of.last = at
	}
}

// of returns what is counted of a cluster.
func (t Templates) of(cluster string) *count {
	if t[cluster] == nil {
		t[cluster] = &count{}
	}
	return t[cluster]
}

// elsewhere reports whether a placement means another cluster of a fleet than this one, by any of its affinities, that is not lost itself.
func elsewhere(p *policyv1alpha1.Placement, cluster string, fleet []*clusterv1alpha1.Cluster) bool {
	return slices.ContainsFunc(fleet, func(c *clusterv1alpha1.Cluster) bool {
		return c.Name != cluster && c.DeletionTimestamp == nil && !failover.Lost(c) && selector.Placement(c, p)
	})
}

func isPlaced(spec *workv1alpha2.ResourceBindingSpec, cluster string) bool {
	for _, t := range spec.Clusters {
		if t.Name == cluster {
			return true
		}
	}
	return false
}

// Text returns what to add to the remark that a cluster is lost: how many templates leave it unless it comes back, and when, and
// how many have no other place, or stay as failover was off when they were placed. Empty for none.
func (t Templates) Text(cluster string) string {
	of := t[cluster]
	if of == nil {
		return ""
	}
	if of.stay > 0 && of.templates+of.nowhere == 0 { // else failover is on, and what was placed before that is decided anew
		return either(of.stay, "; 1 template stays", "; %d templates stay") + " in it, unless failover was turned on since (flotillad serve --failover=on)"
	}
	stay := either(of.nowhere, "; 1 template should leave it, and has no other place", "; %d templates should leave it, and have no other place")
	if of.templates == 0 {
		return stay
	}
	who := either(of.templates, "; 1 template leaves it", "; %d templates leave it")
	when := " at " + clock(of.first)
	if clock(of.last) != clock(of.first) {
		when = " from " + clock(of.first) + " to " + clock(of.last)
	}
	return who + when + " UTC, unless it is back" + stay
}

// either returns a text for a count: one where it is one, many with the number in it for more, and none for zero.
func either(n int, one, many string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return one
	default:
		return fmt.Sprintf(many, n)
	}
}

func clock(at time.Time) string { return at.UTC().Format(time.TimeOnly) }
