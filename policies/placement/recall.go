package placement

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/placement/answers"
)

// assignedBy returns how many units of the workload each cluster is assigned today.
func assignedBy(spec *workv1alpha2.ResourceBindingSpec) map[string]int32 {
	out := make(map[string]int32, len(spec.Clusters))
	for i := range spec.Clusters {
		out[spec.Clusters[i].Name] = max(Units(spec, spec.Clusters[i]), 0)
	}
	return out
}

// Recalled returns what was answered about clusters when a binding was decided last, for who cannot ask them: as it counts for
// wanted, which is what the binding becomes and runs where it does. Nil where nothing was answered, or about pods that need
// something else; and where another placement is due, if it was more than answers.MaxAge ago.
func Recalled(stored, wanted workv1alpha2.Binding, snap Snapshot, now time.Time) map[string]estimate.Answer {
	if stored == nil {
		return nil
	}
	record, _ := RecordOf(stored)
	was, is := stored.BindingSpec(), wanted.BindingSpec()
	if record.Estimates == nil || !equality.Semantic.DeepEqual(was.ReplicaRequirements, is.ReplicaRequirements) || !equality.Semantic.DeepEqual(was.Components, is.Components) {
		return nil
	}
	switch why, _ := Due(wanted, snap); {
	case why == "", why == DueFailed, why == DueAlways: // what was decided stands
	case now.Sub(record.Estimates.At.Time) > answers.MaxAge:
		return nil
	}
	return record.Estimates.Now(assignedBy(is), now)
}
