// Package lastmove explains how a template came to be where it is, and whether it
// will go back.
//
// In go its last move and the clusters that have a Work of it; out come
// sentences. It decides nothing.
package lastmove

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// Text returns what Past returns for a move; empty once the template runs again
// in all clusters that it left, and of what the descheduler moved for as long as it is the last move. in are the clusters that have a Work of it: one
// that it left and that still has a Work has not reported that the old copy is
// gone: "from west to east at 2026-01-02 06:11:04 UTC: …; the old copy in west is
// to go".
func Text(m *eviction.Move, spec *workv1alpha2.ResourceBindingSpec, in []string, now time.Time) string {
	if m == nil {
		return ""
	}
	if m.Why == placement.DueClusterLeaving {
		past := *m
		past.Why, m = "a target cluster left", &past
	}
	text := m.Past(spec.GracefulEvictionTasks, now)
	if m.Replicas > 0 { // others may run on there
		return text
	}
	var back, left []string
	for _, cluster := range m.From {
		switch {
		case slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster }):
			back = append(back, cluster)
		case slices.Contains(in, cluster):
			left = append(left, cluster)
		}
	}
	if text == "" || len(back) == len(m.From) {
		return ""
	}
	again := ""
	if len(back) > 0 {
		again = "; it is in " + strings.Join(back, ", ") + " again"
	}
	if len(left) == 0 {
		return text + again
	}
	still := *m
	still.Ended = &still.At // the time at which it ended is not known
	text = still.Past(nil, now) + "; the old "
	if len(left) == 1 {
		return text + "copy in " + left[0] + " is to go" + again
	}
	return text + "copies in " + strings.Join(left, ", ") + " are to go" + again
}

// Data adds to a text of Text what becomes of the data of a template that makes
// volume claims, in the clusters that it has left for good.
func Data(text string, m *eviction.Move, spec *workv1alpha2.ResourceBindingSpec, template *unstructured.Unstructured) string {
	if text == "" || m == nil {
		return text
	}
	var left []string
	for _, cluster := range m.From {
		if !slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster }) {
			left = append(left, cluster)
		}
	}
	return strings.TrimSuffix(text+"; "+volumes.LeftBehind(template, left, nil), "; ")
}

// In returns the clusters that the Works are for.
func In(works []*workv1alpha1.Work) []string {
	var out []string
	for _, w := range works {
		if cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace); ok {
			out = append(out, cluster)
		}
	}
	return out
}

// Back explains, for the clusters that drains moved a template away from, what
// would bring it back: nothing does by itself.
func Back(names []string, clusters []*clusterv1alpha1.Cluster) []string {
	var out []string
	for _, c := range clusters {
		switch {
		case !slices.Contains(names, c.Name):
		case failover.Drains(c):
			out = append(out, "not to "+c.Name+" while its drain is in force: flotilla uncordon "+c.Name+" --return ends that, and has it placed anew")
		default:
			out = append(out, "not by itself to "+c.Name+", of which the drain is over: flotilla uncordon "+c.Name+" --return has it placed anew, by what counts now")
		}
	}
	return out
}

// Anew explains what would bring a template back to the clusters that it left for a taint, as of a lost cluster: without
// failBackSeconds nothing does by itself, unless it runs in each cluster that fits, or does not become healthy where it is. Of several
// affinities another one may be in force by now, so that nothing is said: what is not tried again is told elsewhere. template names it on
// a command line.
func Anew(record placement.Record, b workv1alpha2.Binding, clusters []*clusterv1alpha1.Cluster, template string, now time.Time) []string {
	spec := b.BindingSpec()
	rules, known := record.Rules.Rules()
	if known && placement.Whole(spec) {
		if back := rules.Undoing(b, placement.NewSnapshot(clusters), now); len(back) > 0 {
			return back
		}
	}
	if spec.Failover != nil && spec.Failover.FailBackSeconds != nil {
		return nil
	}
	var out []string
	for _, cluster := range record.LastMove.Tainted(spec) {
		if placement.Everywhere(spec) {
			if spec.Placement != nil && len(spec.Placement.ClusterAffinities) > 1 {
				continue
			}
			if record.Reason != "" && !record.Succeeded() && isBack(cluster, clusters) {
				out = append(out, "to "+cluster+", which is back, once that is not refused any more: "+strings.TrimSuffix(record.Message, "."))
				continue
			}
			out = append(out, "to "+cluster+" once that is back, without the taint, as it runs in each cluster that fits")
			continue
		}
		if known && failover.MayUndo(spec, cluster) && placement.Whole(spec) {
			out = append(out, "to "+cluster+" once that is back, without the taint, if it does not become healthy where it is; else not by itself: then flotilla rebalance "+template+" has it placed anew, by what counts then")
			continue
		}
		out = append(out, "not by itself to "+cluster+": once that is back, without the taint, flotilla rebalance "+template+" has it placed anew, by what counts then")
	}
	return out
}

// isBack reports whether a cluster is heard of, and has no taint that moves what is there.
func isBack(name string, clusters []*clusterv1alpha1.Cluster) bool {
	return slices.ContainsFunc(clusters, func(c *clusterv1alpha1.Cluster) bool {
		return c.Name == name && !failover.Away(c) && !slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute })
	})
}
