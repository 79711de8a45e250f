package rules

import (
	"maps"
	"slices"
	"time"
)

// ReasonClusterSilent is the reason of a condition that is not known any more.
const ReasonClusterSilent = "ClusterSilent"

// Unheard says what is not known any more of a workload in a cluster of which nothing
// is heard. All other fields stay as the cluster reported them last: how many replicas
// there are is what others scale by.
type Unheard struct {
	// Lost are the counts of replicas that were known to work.
	Lost []string
	// All and Unavailable are the counts of all replicas, and of those that do not
	// work, which become all of them. Empty where the kind has none.
	All, Unavailable string
	// Condition is the type of the condition that was True while enough replicas
	// worked. Empty where the kind has none.
	Condition string
}

// Rule returns the rule for the kind.
func (u Unheard) Rule() func(map[string]any, time.Time) map[string]any {
	return func(reported map[string]any, since time.Time) map[string]any {
		status := maps.Clone(reported)
		for _, name := range u.Lost {
			if status[name] != nil {
				status[name] = int64(0)
			}
		}
		if u.Unavailable != "" {
			status[u.Unavailable] = max(Number(status, u.All), Number(status, u.Unavailable))
		}
		conditions := List(status, "conditions")
		if !ConditionTrue(conditions, u.Condition) {
			return status
		}
		conditions = slices.Clone(conditions)
		for i, v := range conditions {
			if c, _ := v.(map[string]any); Text(c, "type") == u.Condition {
				conditions[i] = map[string]any{
					"type": u.Condition, "status": statusUnknown, "reason": ReasonClusterSilent,
					"message": "nothing is heard of the cluster", "lastTransitionTime": since.UTC().Format(time.RFC3339),
				}
			}
		}
		status["conditions"] = conditions
		return status
	}
}
