package batch

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// Types of a training job's conditions. The last condition of the list shows the
// state of the job, so their order matters.
const (
	jobCreated    = "Created"
	jobSuspended  = "Suspended"
	jobRestarting = "Restarting"
	jobRunning    = "Running"
	jobFailed     = "Failed"
	jobSucceeded  = "Succeeded"
)

// stages are the conditions that a job passes through, in the order in which they
// are listed; types that are not known follow Created.
var stages = []string{jobCreated, rules.Others, jobSuspended, jobRestarting, jobRunning}

// merger returns the conditions that the clusters report as conditions of the
// template, by type.
type merger func(status map[string]any, r rules.Reports) map[string]map[string]any

// trainingConditions returns a step that lists the conditions that a job passes
// through and, at the end, the one that ends it: Failed as soon as the job has
// failed in one cluster, Succeeded once it has in all of them. A job in one
// cluster gets what that cluster reports.
func trainingConditions(middle merger) rules.Step {
	return func(status map[string]any, r rules.Reports) {
		was := rules.List(status, "conditions")
		all := middle(status, r)
		end := final(r, was)
		out := []any{}
		for _, stage := range stages {
			for _, t := range slices.Sorted(maps.Keys(all)) {
				known := slices.Contains(stages, t) || t == jobFailed || t == jobSucceeded
				if t == stage || stage == rules.Others && !known {
					out = append(out, all[t])
				}
			}
		}
		if end != nil {
			out = append(out, end)
		}
		delete(status, "conditions")
		if len(out) > 0 || len(was) > 0 {
			status["conditions"] = out
		}
	}
}

// merged is the merger for which a condition is true once it is true in all
// clusters; Created, Running, Restarting and those that are adverse for every
// kind are true as soon as one cluster reports them so.
func merged(status map[string]any, r rules.Reports) map[string]map[string]any {
	total := maps.Clone(status)
	rules.EveryCondition(jobCreated, jobRunning, jobRestarting)(total, r)
	out := map[string]map[string]any{}
	for _, c := range rules.Objects(total, "conditions") {
		out[rules.Text(c, "type")] = c
	}
	if len(r.Parts) < 2 {
		return out
	}
	for _, t := range []string{jobCreated, jobRunning} { // they say the same in every cluster, so no cluster is named
		if c := out[t]; c != nil {
			delete(c, "message")
		}
	}
	if c := out[jobCreated]; c != nil {
		date(c, earliest(r))
	}
	running(out, r)
	return out
}

// newestOf is the merger that takes, for each type, the condition that was
// updated last.
func newestOf(_ map[string]any, r rules.Reports) map[string]map[string]any {
	out, reported := map[string]map[string]any{}, map[string]string{}
	for _, p := range r.Parts {
		for _, c := range rules.Objects(p.Status, "conditions") {
			t := rules.Text(c, "type")
			at := cmp.Or(rules.Time(c, "lastUpdateTime"), rules.Time(c, "lastTransitionTime"))
			if was, ok := out[t]; t == "" || len(out) == rules.MostConditions && !ok || was != nil && at <= reported[t] {
				continue
			}
			out[t], reported[t] = rules.Plain(c), at
		}
	}
	return out
}

// running sets the Running condition of a job in several clusters: true from when
// one of them has begun to run it until it ends. The condition is removed while
// the job is suspended somewhere and runs nowhere.
func running(all map[string]map[string]any, r rules.Reports) {
	c := all[jobRunning]
	switch {
	case c == nil:
	case final(r, nil) != nil:
		c["status"] = "False"
	case len(clustersWith(r, jobSuspended)) > 0 && len(clustersWith(r, jobRunning)) == 0:
		delete(all, jobRunning)
	default:
		c["status"] = "True"
	}
}

// final returns the condition that ends a job, Failed or Succeeded; nil while the
// job has not ended. was are the template's present conditions: an end that was
// reported keeps its time.
func final(r rules.Reports, was []any) map[string]any {
	failed, succeeded := clustersWith(r, jobFailed), clustersWith(r, jobSucceeded)
	end, clusters := jobFailed, failed
	if len(failed) == 0 {
		if len(r.Parts) == 0 || len(succeeded) < len(r.Parts) {
			return nil
		}
		end, clusters = jobSucceeded, succeeded
	}
	first, at := map[string]any{}, ""
	for _, p := range r.Parts {
		if c := rules.Condition(rules.List(p.Status, "conditions"), end); c != nil && slices.Contains(clusters, p.Cluster) {
			if len(first) == 0 {
				first = c
			}
			at = max(at, rules.Time(c, "lastTransitionTime"))
		}
	}
	if len(r.Parts) == 1 {
		return rules.Plain(first)
	}
	kind := r.Template.GetKind()
	out := map[string]any{"type": end, "status": "True", "reason": kind + end}
	switch {
	case end == jobFailed:
		out["message"] = strings.TrimSuffix(kind+" failed in clusters: "+rules.Names(clusters)+": "+rules.Text(rules.Plain(first), "message"), ": ")
	case kind == "TFJob":
		out["reason"], out["message"] = "Completed", kind+" completed"
	default:
		out["message"] = kind + " succeeded in all clusters"
	}
	if now := rules.Condition(was, end); rules.Text(now, "status") == "True" {
		at = cmp.Or(rules.Time(now, "lastTransitionTime"), at)
	}
	date(out, at)
	return out
}

// clustersWith returns the clusters in which a condition is true.
func clustersWith(r rules.Reports, condition string) []string {
	var out []string
	for _, p := range r.Parts {
		if rules.ConditionTrue(rules.List(p.Status, "conditions"), condition) {
			out = append(out, p.Cluster)
		}
	}
	return out
}

// earliest returns when the job was first started; empty where no cluster reports
// a start.
func earliest(r rules.Reports) string {
	total := map[string]any{}
	rules.Earliest("startTime")(total, r)
	return rules.Text(total, "startTime")
}

// date sets the times of a condition; an empty time sets none.
func date(c map[string]any, at string) {
	if at != "" {
		c["lastTransitionTime"], c["lastUpdateTime"] = at, at
	}
}

// completed sets completionTime to the last that a cluster reports, once the job
// has succeeded in every cluster. The time of an only cluster is taken in any
// case.
func completed(status map[string]any, r rules.Reports) {
	delete(status, "completionTime")
	if len(r.Parts) > 0 && len(clustersWith(r, jobSucceeded)) == len(r.Parts) || len(r.Parts) == 1 {
		rules.Latest("completionTime")(status, r)
	}
}
