package native

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

var parallelismPath = []string{"spec", "parallelism"}

// jobConditions are the conditions that show how a job ended, and whether it is
// suspended. With the wanted status False, a cluster without the condition counts
// as one in which it is false.
var jobConditions = []rules.Merge{
	{Type: string(batchv1.JobSuspended), Wanted: corev1.ConditionFalse},
	{Type: string(batchv1.JobFailureTarget), Wanted: corev1.ConditionFalse},
	{Type: string(batchv1.JobFailed), Wanted: corev1.ConditionFalse},
	{Type: string(batchv1.JobSuccessCriteriaMet)},
	{Type: string(batchv1.JobComplete)},
}

func job() kinds.Rules {
	return kinds.Rules{
		Replicas: jobReplicas,
		Revise:   rules.ReviseAt(parallelismPath...),
		Retain:   retainJob,
		Retains:  retainsJob,
		Reflect: rules.WithConditions(rules.Reflect("active", "succeeded", "failed", "startTime", "completionTime"),
			jobConditions...),
		Aggregate:    rules.Aggregate(aggregateJob),
		Dependencies: rules.PodTemplateDependencies(templatePath...),
	}
}

func cronJob() kinds.Rules {
	return kinds.Rules{
		Aggregate:    rules.Aggregate(activeJobs, latest("lastScheduleTime", "lastSuccessfulTime")),
		Dependencies: rules.PodTemplateDependencies("spec", "jobTemplate", "spec", "template"),
	}
}

// jobReplicas returns how many pods of a job run at once: its parallelism, but no
// more than its completions.
func jobReplicas(obj kinds.Object) (int32, *workv1alpha2.ReplicaRequirements, error) {
	n, req, err := rules.Replicas(parallelismPath, templatePath)(obj)
	if err != nil || rules.Value(obj.Object, "spec", "completions") == nil {
		return n, req, err
	}
	completions, err := rules.Count(obj.Object, "spec", "completions")
	return min(n, completions), req, err
}

// madeLabels are the labels that an API server adds to the pods of a job, with
// values of its own.
var madeLabels = []string{
	batchv1.ControllerUidLabel, batchv1.JobNameLabel, "controller-uid", "job-name",
}

func retainsJob(desired kinds.Object) bool {
	labels := rules.Object(desired.Object, "spec", "template", "metadata", "labels")
	return rules.Has("spec", "selector")(desired) ||
		slices.ContainsFunc(madeLabels, func(l string) bool { return labels[l] != nil })
}

// retainJob keeps the selector that the member generated, and the pod labels that
// it selects.
func retainJob(desired, observed kinds.Object) (kinds.Object, error) {
	out, err := rules.DropChanged("spec", "selector")(desired, observed)
	for _, label := range madeLabels {
		if err != nil {
			return nil, err
		}
		out, err = rules.DropChanged("spec", "template", "metadata", "labels", label)(out, observed)
	}
	return out, err
}

// Reasons and messages of conditions that are set on a template.
const (
	jobFailedReason    = "JobFailed"
	jobCompletedReason = "Completed"
	jobCompletedText   = "Job completed"
)

// aggregateJob sets the status of a job. The API server accepts only certain
// changes of it: the counts of pods that have ended never fall, the start time is
// set once, a job ends only when none of its pods runs, and stays as it is once
// it has ended.
func aggregateJob(status map[string]any, r rules.Reports) {
	if finished(status) {
		return
	}
	sumJob(status, r.Parts)
	if start := startOf(status, r.Parts); start != "" {
		status["startTime"] = start
	}
	failed, complete := ended(r.Parts, batchv1.JobFailed), ended(r.Parts, batchv1.JobComplete)
	switch {
	case len(failed) > 0:
		failJob(status, r, failed)
	case len(r.Parts) > 0 && len(complete) == len(r.Parts):
		completeJob(status, r)
	}
	if !finished(status) {
		suspendJob(status, r)
	}
}

// ended returns the clusters in which a condition is true.
func ended(parts []rules.Part, kind batchv1.JobConditionType) []string {
	var out []string
	for _, p := range parts {
		if rules.ConditionTrue(rules.List(p.Status, "conditions"), string(kind)) {
			out = append(out, p.Cluster)
		}
	}
	return out
}

func finished(status map[string]any) bool {
	conditions := rules.List(status, "conditions")
	return rules.ConditionTrue(conditions, string(batchv1.JobFailed)) || rules.ConditionTrue(conditions, string(batchv1.JobComplete))
}

func sumJob(status map[string]any, parts []rules.Part) {
	for _, name := range []string{"active", "succeeded", "failed"} {
		sum := rules.SumOf(parts, name)
		if name != "active" {
			sum = max(sum, rules.Number(status, name))
		}
		status[name] = sum
	}
}

// startOf returns the earliest start once the job has started everywhere, or
// has failed somewhere.
func startOf(status map[string]any, parts []rules.Part) string {
	if at := rules.Text(status, "startTime"); at != "" {
		return at
	}
	first, all := "", true
	for _, p := range parts {
		at := rules.Time(p.Status, "startTime")
		if at == "" {
			all = false
		} else if first == "" || at < first {
			first = at
		}
	}
	if !all && len(ended(parts, batchv1.JobFailed)) == 0 {
		return ""
	}
	return first
}

// failJob sets the condition that the job will fail and, once none of its pods
// runs, the one that it has failed.
func failJob(status map[string]any, r rules.Reports, failed []string) {
	if rules.ConditionTrue(rules.List(status, "conditions"), string(batchv1.JobSuccessCriteriaMet)) {
		return // the API server refuses a job with both conditions
	}
	message := fmt.Sprintf("Job executed failed in member clusters %s", strings.Join(failed, ","))
	at := latestTransition(r, batchv1.JobFailed)
	setTrue(status, batchv1.JobFailureTarget, jobFailedReason, message, at)
	if rules.Number(status, "active") == 0 && rules.Text(status, "startTime") != "" {
		setTrue(status, batchv1.JobFailed, jobFailedReason, message, at)
	}
}

func completeJob(status map[string]any, r rules.Reports) {
	start := rules.Text(status, "startTime")
	if rules.Number(status, "active") > 0 || start == "" ||
		rules.ConditionTrue(rules.List(status, "conditions"), string(batchv1.JobFailureTarget)) {
		return
	}
	at := latestTransition(r, batchv1.JobComplete)
	setTrue(status, batchv1.JobSuccessCriteriaMet, jobCompletedReason, jobCompletedText, at)
	setTrue(status, batchv1.JobComplete, jobCompletedReason, jobCompletedText, at)
	done := start
	for _, p := range r.Parts {
		done = max(done, rules.Time(p.Status, "completionTime"))
	}
	status["completionTime"] = done
}

// suspendJob sets the Suspended condition to true once the job is suspended in
// every cluster in which it has not ended, and to false when that is no longer
// so.
func suspendJob(status map[string]any, r rules.Reports) {
	suspended, runs := 0, 0
	for _, p := range r.Parts {
		switch {
		case finished(p.Status):
		case rules.ConditionTrue(rules.List(p.Status, "conditions"), string(batchv1.JobSuspended)):
			suspended++
		default:
			runs++
		}
	}
	if suspended > 0 && runs == 0 {
		setTrue(status, batchv1.JobSuspended, "JobSuspended", "Job suspended", latestTransition(r, batchv1.JobSuspended))
		return
	}
	if rules.ConditionTrue(rules.List(status, "conditions"), string(batchv1.JobSuspended)) {
		set(status, batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "Job resumed", latestTransition(r, batchv1.JobSuspended))
	}
}

// latestTransition returns when the last of the clusters reported a change of the
// condition; empty where none did.
func latestTransition(r rules.Reports, kind batchv1.JobConditionType) string {
	latest := ""
	for _, p := range r.Parts {
		if c := rules.Condition(rules.List(p.Status, "conditions"), string(kind)); c != nil {
			latest = max(latest, rules.Time(c, "lastTransitionTime"))
		}
	}
	return latest
}

// setTrue sets a condition to true. One that is true already keeps the message
// that it got first.
func setTrue(status map[string]any, kind batchv1.JobConditionType, reason, message, at string) {
	if !rules.ConditionTrue(rules.List(status, "conditions"), string(kind)) {
		set(status, kind, corev1.ConditionTrue, reason, message, at)
	}
}

func set(status map[string]any, kind batchv1.JobConditionType, is corev1.ConditionStatus, reason, message, at string) {
	c := map[string]any{"type": string(kind), "status": string(is), "reason": reason, "message": message}
	if at != "" {
		c["lastTransitionTime"], c["lastProbeTime"] = at, at
	}
	conditions := slices.DeleteFunc(slices.Clone(rules.List(status, "conditions")), func(v any) bool {
		m, ok := v.(map[string]any)
		return ok && rules.Text(m, "type") == string(kind)
	})
	status["conditions"] = append(conditions, c)
}

// activeJobs lists the active jobs of a CronJob in all clusters.
func activeJobs(status map[string]any, r rules.Reports) {
	active := []any{}
	for _, p := range r.Parts {
		for _, entry := range rules.Objects(p.Status, "active") {
			if ref, ok := rules.Canonical[corev1.ObjectReference](entry); ok {
				active = append(active, ref)
			}
		}
	}
	if len(active) > 0 || status["active"] != nil {
		status["active"] = active
	}
}

// latest returns a step that sets times to the latest that any cluster reports.
// They never go back, also when a cluster is removed.
func latest(names ...string) rules.Step {
	return func(status map[string]any, r rules.Reports) {
		for _, name := range names {
			for _, p := range r.Parts {
				if at := rules.Time(p.Status, name); at > rules.Text(status, name) {
					status[name] = at
				}
			}
		}
	}
}
