package drain

import (
	"slices"
	"strings"
	"time"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// refusalGrace is how long a new copy may fail to be applied before its move counts as refused: a namespace, an account or
// the definition of a kind may come a moment after it.
const refusalGrace = time.Minute

// refusal returns what the clusters say that do not take the new copy for which an old one is kept; empty while it is
// not old, or another cluster that is enough may take it.
func refusal(b workv1alpha2.Binding, task *workv1alpha2.GracefulEvictionTask, kept eviction.Kept, now time.Time) string {
	if task.CreationTimestamp.IsZero() || now.Sub(task.CreationTimestamp.Time) < refusalGrace {
		return ""
	}
	var refuse []string
	for i := range b.BindingStatus().AggregatedStatus {
		item := &b.BindingStatus().AggregatedStatus[i]
		if slices.Contains(kept.Until, item.ClusterName) && !item.Applied && item.AppliedMessage != "" && item.AppliedMessage != rollup.Overdue {
			refuse = append(refuse, item.ClusterName+" does not take it: "+strings.TrimSuffix(item.AppliedMessage, "."))
		}
	}
	if kept.Any && len(refuse) < len(kept.Until) {
		return ""
	}
	return strings.Join(refuse, "; ")
}

// ungiven returns why none of the clusters that a template moves to is given a copy at all, as an edit is held back; empty where one is, or
// will be by itself.
func ungiven(b workv1alpha2.Binding, to []workv1alpha2.TargetCluster) string {
	faults := propagation.ClusterFaultsOf(b)
	var all []string
	for _, t := range to {
		if why := faults[t.Name]; strings.HasPrefix(why, propagation.HeldBack) {
			all = append(all, t.Name+" does not get it: "+strings.TrimSuffix(why, "."))
		}
	}
	if len(all) < len(to) {
		return ""
	}
	return strings.Join(all, "; ")
}
