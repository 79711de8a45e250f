package batch

import (
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// volcano is Volcano's batch jobs.
func volcano() kinds.Table {
	counts := []string{"pending", "running", "succeeded", "failed", "terminating", "unknown", "minAvailable"}
	const phase = "state.phase"
	return kinds.Table{words.Kind("batch.volcano.sh/v1alpha1", "Job"): words.Graded(kinds.Rules{
		Components: words.Tasks("spec.tasks", "template", func(task map[string]any) int64 { return words.CountOr(1, task, "replicas") }),
		Reflect:    rules.Reflect(append(counts, "state", "conditions", "taskStatusCount", "retryCount", "version")...),
		Aggregate: rules.Aggregate(rules.Sum(counts...), rules.Tally("taskStatusCount"), rules.Greatest("retryCount", "version"),
			rules.FromWorst("state", phase, "Pending", "Failed", "Aborted", "Aborting", "Terminated", "Terminating", "Restarting", "Pending",
				"Running", "Completing", "Completed")),
		Dependencies: words.Needs(words.Pods("spec.tasks.*.template.spec"),
			words.Named("v1", "PersistentVolumeClaim", "spec.existingVolumes.*.volumeClaimName")),
	}, words.ByWord("status.state.phase", []string{"Failed"}, []string{"Running", "Completing", "Completed"}))}
}
