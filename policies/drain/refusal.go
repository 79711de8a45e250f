package drain

import (
	"slices"
	"strings"
	"time"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
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
