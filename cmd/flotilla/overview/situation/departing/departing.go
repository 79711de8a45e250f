// Package departing counts the templates that failover is about to move off clusters.
//
// In go bindings and the clusters that are lost; out comes, for each cluster, how many templates are to leave it, and when.
// It decides nothing: policies/failover says by the rules of each decision when that is due. What cannot be moved by then
// is counted, too.
package departing

import (
	"fmt"
	"time"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// Templates are those that are to leave clusters, by cluster.
type Templates map[string]*count

type count struct {
	templates   int
	first, last time.Time
}

// Take adds a template by its binding, if it is to leave the cluster later than now.
func (t Templates) Take(b workv1alpha2.Binding, cluster *clusterv1alpha1.Cluster, now time.Time) {
	spec := b.BindingSpec()
	if spec.Placement == nil || b.GetDeletionTimestamp() != nil || !isPlaced(spec, cluster.Name) {
		return
	}
	record, _ := placement.RecordOf(b)
	rules, _ := record.Rules.Rules()
	leaving, leaves := rules.Leaves(cluster, spec.Placement.ClusterTolerations, now)
	if !leaves || leaving.Stays != "" || leaving.At == nil || !leaving.At.After(now) {
		return
	}
	at := leaving.At.Time
	of := t[cluster.Name]
	if of == nil {
		of = &count{first: at, last: at}
		t[cluster.Name] = of
	}
	of.templates++
	if at.Before(of.first) {
		of.first = at
	}
	if at.After(of.last) {
		of.last = at
	}
}

func isPlaced(spec *workv1alpha2.ResourceBindingSpec, cluster string) bool {
	for _, t := range spec.Clusters {
		if t.Name == cluster {
			return true
		}
	}
	return false
}

// Text returns what to add to the remark that a cluster is lost: how many templates leave it unless it comes back, and when.
// Empty for none.
func (t Templates) Text(cluster string) string {
	of := t[cluster]
	if of == nil {
		return ""
	}
	who := fmt.Sprintf("; %d templates leave it", of.templates)
	if of.templates == 1 {
		who = "; 1 template leaves it"
	}
	when := " at " + clock(of.first)
	if clock(of.last) != clock(of.first) {
		when = " from " + clock(of.first) + " to " + clock(of.last)
	}
	return who + when + " UTC, unless it is back"
}

func clock(at time.Time) string { return at.UTC().Format(time.TimeOnly) }
