package lineage

import (
	"fmt"
	"strings"
	"time"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/explain/lastmove"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// Placed returns where the template of a binding runs: "east 2, west 1", or "east 2; moved from west at …" once it has
// left west. below are the nodes of its Works.
func Placed(b workv1alpha2.Binding, below []Node) string {
	var out []string
	for _, target := range plan.Targets(plan.SpecOf(b)) {
		text := target.Name
		if target.Replicas > 0 {
			text += fmt.Sprintf(" %d", target.Replicas)
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return "nowhere"
	}
	text := strings.Join(out, ", ")
	record, _ := placement.RecordOf(b)
	if past := lastmove.Text(record.LastMove, b.BindingSpec(), inClusters(below), time.Time{}); past != "" {
		text += "; moved " + past
	}
	return text
}

// inClusters returns the clusters of the Works in the nodes.
func inClusters(works []Node) []string {
	var out []string
	for i := range works {
		if cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(works[i].Namespace); ok {
			out = append(out, cluster)
		}
	}
	return out
}
