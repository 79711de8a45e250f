package native

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// Reasons and messages of the conditions that a template gets.
const (
	jobFailedReason    = "JobFailed"
	jobCompletedReason = "Completed"
	jobCompletedText   = "Job completed"
)

// aggregateJob sums up what clusters report of a job. The server accepts only
// certain steps: counts of ended pods never fall, the start time is set once,
// a job ends only when nothing runs any more, and once ended it stays so.
func aggregateJob(template kinds.Object, items items) (map[string]any, error) {
	status := statusOf(template)
	if finished(list(status, "conditions")) {
		return status, nil
	}
	ps, err := parts(items)
	if err != nil {
		return nil, err
	}
	sumJob(status, ps)
	start := startOf(status, ps)
	if start != "" {
		status["startTime"] = start
	}
	var failed, complete []string
	for _, p := range ps {
		conditions := list(p.status, "conditions")
		if conditionTrue(conditions, string(batchv1.JobFailed)) {
			failed = append(failed, p.cluster)
		}
		if conditionTrue(conditions, string(batchv1.JobComplete)) {
			complete = append(complete, p.cluster)
		}
	}
	switch {
	case len(failed) > 0:
		failJob(status, ps, failed)
	case len(ps) > 0 && len(complete) == len(ps):
		completeJob(status, ps)
	}
	return status, nil
}

func finished(conditions []any) bool {
	return conditionTrue(conditions, string(batchv1.JobFailed)) || conditionTrue(conditions, string(batchv1.JobComplete))
}

func sumJob(status map[string]any, ps []part) {
	for _, name := range []string{"active", "succeeded", "failed"} {
		var sum int64
		for _, p := range ps {
			sum += number(p.status, name)
		}
		if name != "active" {
			sum = max(sum, number(status, name))
		}
		status[name] = sum
	}
}

// startOf returns the earliest start once the job has started everywhere, or
// has failed somewhere.
func startOf(status map[string]any, ps []part) string {
	if at := text(status, "startTime"); at != "" {
		return at
	}
	first, all := "", true
	for _, p := range ps {
		at := text(p.status, "startTime")
		if at == "" {
			all = false
		} else if first == "" || at < first {
			first = at
		}
	}
	anyFailed := slices.ContainsFunc(ps, func(p part) bool {
		return conditionTrue(list(p.status, "conditions"), string(batchv1.JobFailed))
	})
	if !all && !anyFailed {
		return ""
	}
	return first
}

// failJob says that the job will fail, and that it has once nothing runs.
func failJob(status map[string]any, ps []part, failed []string) {
	slices.Sort(failed)
	message := fmt.Sprintf("Job executed failed in member clusters %s", strings.Join(failed, ","))
	at := latestTransition(ps, batchv1.JobFailed)
	setCondition(status, batchv1.JobFailureTarget, jobFailedReason, message, at)
	if number(status, "active") == 0 && text(status, "startTime") != "" {
		setCondition(status, batchv1.JobFailed, jobFailedReason, message, at)
	}
}

func completeJob(status map[string]any, ps []part) {
	if number(status, "active") > 0 || text(status, "startTime") == "" ||
		conditionTrue(list(status, "conditions"), string(batchv1.JobFailureTarget)) {
		return
	}
	at := latestTransition(ps, batchv1.JobComplete)
	setCondition(status, batchv1.JobSuccessCriteriaMet, jobCompletedReason, jobCompletedText, at)
	setCondition(status, batchv1.JobComplete, jobCompletedReason, jobCompletedText, at)
	done := text(status, "startTime")
	for _, p := range ps {
		done = max(done, text(p.status, "completionTime"))
	}
	status["completionTime"] = done
}

// latestTransition returns when the last of the clusters reached a condition.
func latestTransition(ps []part, kind batchv1.JobConditionType) string {
	latest := ""
	for _, p := range ps {
		if c := condition(list(p.status, "conditions"), string(kind)); c != nil {
			latest = max(latest, text(c, "lastTransitionTime"))
		}
	}
	return latest
}

// setCondition sets a condition that is true; one that is so already is kept,
// with the message that it got first.
func setCondition(status map[string]any, kind batchv1.JobConditionType, reason, message, at string) {
	conditions := list(status, "conditions")
	if conditionTrue(conditions, string(kind)) {
		return
	}
	c := map[string]any{
		"type": string(kind), "status": string(corev1.ConditionTrue), "reason": reason, "message": message,
	}
	if at != "" {
		c["lastTransitionTime"], c["lastProbeTime"] = at, at
	}
	conditions = slices.DeleteFunc(slices.Clone(conditions), func(v any) bool {
		m, ok := v.(map[string]any)
		return ok && text(m, "type") == string(kind)
	})
	status["conditions"] = append(conditions, c)
}
