// Package leaving says to users which clusters failover is to move a template off, and when.
//
// In go a binding, the clusters, and the rules that its decision has noted; out come sentences. It decides nothing: it asks
// policies/placement what a decision would find at that time, by what is known now.
package leaving

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// Of returns the texts about the clusters that b is placed in, in their order, and about the data of its template: "west at 12:03:20 UTC (in 40s) unless it is back:
// untolerated taint {a:NoExecute}", or why it is not left. Nil where the decision has noted no rules; opts are those that it was
// made with otherwise.
func Of(b workv1alpha2.Binding, template *unstructured.Unstructured, clusters []*clusterv1alpha1.Cluster, in placement.Situation, opts placement.Options) []string {
	record, _ := placement.RecordOf(b)
	rules, known := record.Rules.Rules()
	spec := b.BindingSpec()
	if !known || spec.Placement == nil || b.GetDeletionTimestamp() != nil {
		return nil
	}
	opts.Failover = rules
	var out []string
	for _, c := range clusters {
		if !slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == c.Name }) {
			continue
		}
		if l, leaves := rules.Leaves(c, spec.Placement.ClusterTolerations, in.Now); leaves {
			l.Stays = staysIn(b, l, in, opts)
			if l.Stays == finished {
				l.At = nil // it stays whatever comes
			}
			text := l.Text(in.Now)
			if data := volumes.LeftBehind(template, []string{c.Name}); data != "" && l.Stays == "" {
				text += "; " + data
			}
			out = append(out, text)
		}
	}
	return out
}

// finished is why what has come to its end stays.
const finished = "it has finished there, and would run once more elsewhere"

// staysIn is why a template is not moved off a cluster although it is to be; empty where it is.
func staysIn(b workv1alpha2.Binding, l failover.Leaving, in placement.Situation, opts placement.Options) string {
	if l.At == nil {
		return l.Stays
	}
	if slices.Contains(failover.Finished(b), l.Cluster) {
		return finished
	}
	in.Now = failover.Later(in.Now, l.At.Time)
	d, _ := placement.Decide(b, in, opts)
	if stays := d.Record.Stays; stays != nil && slices.Contains(stays.Clusters, l.Cluster) {
		_, why, _ := strings.Cut(stays.Message, ": ")
		return "it cannot be: " + why
	}
	return ""
}

// Over reports whether a template was to leave clusters because they were drained, and none of them is any more.
func Over(stays *placement.Stays, clusters []*clusterv1alpha1.Cluster) bool {
	if !strings.Contains(stays.Message, "{"+clusterv1alpha1.TaintClusterDrain) || len(stays.Clusters) == 0 {
		return false
	}
	return !slices.ContainsFunc(clusters, func(c *clusterv1alpha1.Cluster) bool {
		return slices.Contains(stays.Clusters, c.Name) && failover.Drains(c)
	})
}
