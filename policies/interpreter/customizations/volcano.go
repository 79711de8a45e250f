package customizations

import (
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// volcano is Volcano's batch jobs.
func volcano() kinds.Table {
	counts := []string{"pending", "running", "succeeded", "failed", "terminating", "unknown", "minAvailable"}
	const phase = "state.phase"
	return kinds.Table{kind("batch.volcano.sh/v1alpha1", "Job"): graded(kinds.Rules{
		Components: tasks("spec.tasks", "template", func(task map[string]any) int64 { return countOr(1, task, "replicas") }),
		Reflect:    rules.Reflect(append(counts, "state", "conditions", "taskStatusCount", "retryCount", "version")...),
		Aggregate: rules.Aggregate(rules.Sum(counts...), rules.Tally("taskStatusCount"), rules.Greatest("retryCount", "version"),
			rules.FromWorst("state", phase, "Pending", "Failed", "Aborted", "Aborting", "Terminated", "Terminating", "Restarting", "Pending",
				"Running", "Completing", "Completed")),
		Dependencies: needs(pods("spec.tasks.*.template.spec"),
			named("v1", "PersistentVolumeClaim", "spec.existingVolumes.*.volumeClaimName")),
	}, byWord("status.state.phase", []string{"Failed"}, []string{"Running", "Completing", "Completed"}))}
}
