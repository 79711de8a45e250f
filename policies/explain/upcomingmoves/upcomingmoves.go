// Package upcomingmoves explains to users which clusters failover, of clusters or of the
// application, will move a template away from, and when.
//
// In go a binding, the clusters, and the failover rules that the record of its
// decision has; out come sentences. It decides nothing itself: it calls
// policies/placement for the decision at that time, with what is known now.
package upcomingmoves

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/unplaced"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// Of returns a text for each cluster that b is placed in and will leave, in the
// order of clusters: "west at 12:03:20 UTC (in 40s) unless it is back:
// untolerated taint {a:NoExecute}", "unless it is healthy by then: unhealthy since
// 12:01:10 UTC" where its application fails there, or why b stays there although it
// should leave; with what becomes of the data of its template. Where the record has no
// failover rules these are the drains alone that do not move what has finished;
// opts are the other options that the decision was made with.
func Of(b workv1alpha2.Binding, template *unstructured.Unstructured, clusters []*clusterv1alpha1.Cluster, in placement.Situation, opts placement.Options) []string {
	record, _ := placement.RecordOf(b)
	rules, known := record.Rules.Rules()
	spec := b.BindingSpec()
	if spec.Placement == nil || b.GetDeletionTimestamp() != nil {
		return nil
	}
	opts.Failover = rules
	var out []string
	for _, c := range clusters {
		if !slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == c.Name }) {
			continue
		}
		l, leaves := rules.Leaves(c, spec.Placement.ClusterTolerations, in.Now)
		if leaves = leaves && known; !leaves {
			l, leaves = failover.Fails(c, b, ptr.Deref(record.Moves, failover.Moves{}), in.Now)
		}
		if !leaves {
			if finishedIn(b, c, in.Now) {
				out = append(out, drained(c).Text(in.Now))
			}
			continue
		}
		l.Stays = staysIn(b, l, in, opts)
		if l.Stays == finished {
			l.At = nil // there is no time: it never leaves
		}
		text := l.Text(in.Now)
		if data := volumes.LeftBehind(template, []string{c.Name}, nil); data != "" && l.Stays == "" {
			text += "; " + data
		}
		out = append(out, text)
	}
	return out
}

// finished is why a workload that has ended is not moved.
const finished = "it has finished there, and would run once more elsewhere"

// finishedIn reports whether a template has ended in a cluster that is drained, which it would leave otherwise.
func finishedIn(b workv1alpha2.Binding, c *clusterv1alpha1.Cluster, now time.Time) bool {
	if failover.Ended(b, c.Name) == "" {
		return false
	}
	until, ends := failover.ToleratesDrain(c, b.BindingSpec().Placement.ClusterTolerations, now)
	return ends && !until.After(now)
}

// drained is a cluster that a template stays in although it is drained.
func drained(c *clusterv1alpha1.Cluster) failover.Leaving {
	taint := failover.DrainTaint()
	return failover.Leaving{Cluster: c.Name, Why: "untolerated taint {" + taint.ToString() + "}", Stays: finished}
}

// staysIn returns why a template will not be moved off a cluster that it should
// leave; empty where it will be. A decision is simulated for the time at which it
// would leave.
func staysIn(b workv1alpha2.Binding, l failover.Leaving, in placement.Situation, opts placement.Options) string {
	if l.At == nil {
		return l.Stays
	}
	if !l.Fails && slices.Contains(failover.Finished(b), l.Cluster) {
		return finished
	}
	in.Now = failover.Later(in.Now, l.At.Time)
	d, _ := placement.Decide(b, in, opts)
	if stays := d.Record.Stays; stays != nil && slices.Contains(stays.Clusters, l.Cluster) {
		_, why, _ := strings.Cut(stays.Message, ": ")
		return "it cannot be moved: " + why
	}
	return ""
}

// Over reports whether a template was kept in clusters that were drained, and
// none of them is drained any more.
func Over(stays *unplaced.Stays, clusters []*clusterv1alpha1.Cluster) bool {
	if !strings.Contains(stays.Message, "{"+clusterv1alpha1.TaintClusterDrain) || len(stays.Clusters) == 0 {
		return false
	}
	return !slices.ContainsFunc(clusters, func(c *clusterv1alpha1.Cluster) bool {
		return slices.Contains(stays.Clusters, c.Name) && failover.Drains(c)
	})
}

// Room returns what to do about a template that must leave clusters and does not, by what has it leave, and by what keeps it: a
// rule for its state that leads nowhere, or the want of another place.
func Room(stays *unplaced.Stays) string {
	const elsewhere = "or let the policy mean another cluster with room"
	has := func(text string) bool { return strings.Contains(stays.Message, text) }
	of := func(taint string) bool { return has("untolerated taint {" + taint) }
	clusters := strings.Join(stays.Clusters, " ")
	var state string
	if has(": its state cannot be carried over: ") {
		state = "correct the jsonPath of the rule in spec.failover of its policy, or take that out"
		if !has("): no other place: ") {
			return state
		}
		state += "; "
	}
	switch {
	case of(clusterv1alpha1.TaintClusterDrain):
		return state + "end the drain: flotilla uncordon " + clusters + ", " + elsewhere
	case of(clusterv1alpha1.TaintClusterUnreachable), of(clusterv1alpha1.TaintClusterNotReady):
		return state + "bring the cluster back: flotilla describe cluster " + clusters + ", " + elsewhere
	case of(""):
	case has(" (an application that was unhealthy for "):
		return state + "mend the application, " + elsewhere
	case has(" (an eviction task of "):
		return state + "end the task: take it out of spec.gracefulEvictionTasks of the binding, " + elsewhere
	}
	return state + "take the taint away, have its policy tolerate it, " + elsewhere
}

// Awaits says that the copy in a cluster goes only once that cluster is back, for a template that has been moved off it; empty
// where the cluster is heard of.
func Awaits(spec *workv1alpha2.ResourceBindingSpec, cluster string, clusters []*clusterv1alpha1.Cluster) string {
	away := slices.ContainsFunc(clusters, func(c *clusterv1alpha1.Cluster) bool {
		s, silent := rollup.SilenceOf(c)
		return silent && s.Away && c.Name == cluster
	})
	moved := slices.ContainsFunc(eviction.KeptBy(spec), func(k eviction.Kept) bool { return k.Cluster == cluster && !k.Stuck && !k.Asked })
	if !away || !moved {
		return ""
	}
	return "the copy there goes once " + cluster + " is back, if it is healthy elsewhere by then"
}
