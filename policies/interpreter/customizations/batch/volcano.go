package batch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

const volcanoPhase = "state.phase"

// volcanoPhases are the phases of a job, from the worst to the best.
var volcanoPhases = []string{
	"Failed", "Aborted", "Aborting", "Terminated", "Terminating", rules.Others, "Restarting", "Pending", "Running", "Completing", "Completed",
}

// volcano returns the rules for Volcano's batch jobs.
func volcano() kinds.Table {
	counts := []string{"pending", "running", "succeeded", "failed", "terminating", "unknown", "minAvailable", "retryCount"}
	return kinds.Table{words.Kind("batch.volcano.sh/v1alpha1", "Job"): words.Graded(kinds.Rules{
		Components: volcanoTasks,
		Reflect: rules.Reflect(append(counts, "state", "conditions", "taskStatusCount", "version", "runningDuration",
			"controlledResources")...),
		Aggregate: rules.Aggregate(rules.Sum(counts...), rules.SumByName("taskStatusCount"), rules.Greatest("version"), longest("runningDuration"),
			union("controlledResources"), volcanoConditions, volcanoState),
		Dependencies: words.Needs(words.Pods("spec.tasks.*.template.spec"),
			words.Named("v1", "PersistentVolumeClaim", "spec.volumes.*.volumeClaimName")),
	}, words.ByWord("status."+volcanoPhase, []string{"Failed"}, []string{"Running", "Completing", "Completed"}))}
}

// volcanoTasks returns the tasks of a job as components, each with as many pods
// as have to run at once for the job to start.
func volcanoTasks(obj kinds.Object) (words.Components, error) {
	r := words.Roster{Namespace: obj.GetNamespace()}
	for i, task := range rules.Objects(obj.Object, "spec", "tasks") {
		name := cmp.Or(rules.Text(task, "name"), fmt.Sprintf("task-%d", i))
		count := words.CountOr(words.CountOr(1, task, "replicas"), task, "minAvailable")
		r.Pods(name, count, rules.Object(task, "template", "spec"))
	}
	return r.Result()
}

// longest returns a step that sets a duration to the longest that any cluster
// reports.
func longest(field string) rules.Step {
	return func(status map[string]any, r rules.Reports) {
		delete(status, field)
		most := time.Duration(-1)
		for _, p := range r.Parts {
			text := rules.Text(p.Status, field)
			if d, err := time.ParseDuration(text); err == nil && d > most {
				most, status[field] = d, text
			}
		}
	}
}

// mostResources is how many resources of a job the status of a template lists.
const mostResources = 100

// union returns a step that merges maps of texts; for a name that several
// clusters have, the first of them counts.
func union(field string) rules.Step {
	return func(status map[string]any, r rules.Reports) {
		all := map[string]any{}
		for _, p := range r.Parts {
			given := rules.Object(p.Status, field)
			for _, name := range slices.Sorted(maps.Keys(given)) {
				text, ok := given[name].(string)
				if _, has := all[name]; ok && !has && len(all) < mostResources {
					all[name] = text
				}
			}
		}
		delete(status, field)
		if len(all) > 0 {
			status[field] = all
		}
	}
}

// volcanoConditions lists the phases that a job has gone through: those of the
// only cluster, or of the first in which the job ended badly; else those of all
// clusters, each phase once, at the latest time at which a cluster reached it.
func volcanoConditions(status map[string]any, r rules.Reports) {
	var all []map[string]any
	whole := len(r.Parts) == 1
	for _, p := range r.Parts {
		list := rules.Objects(p.Status, "conditions")
		if whole = whole || slices.ContainsFunc(list, endsBadly); whole {
			all = list
			break
		}
		all = append(all, list...)
	}
	if !whole {
		all = newest(all)
	}
	out := []any{}
	for _, c := range all[:min(len(all), rules.MostConditions)] {
		out = append(out, passed(c))
	}
	delete(status, "conditions")
	if len(out) > 0 {
		status["conditions"] = out
	}
}

// newest returns the latest entry for each phase, in the order of their times.
func newest(all []map[string]any) []map[string]any {
	last := map[string]map[string]any{}
	for _, c := range all {
		phase := rules.Text(c, "status")
		if was, ok := last[phase]; !ok || rules.Time(c, "lastTransitionTime") > rules.Time(was, "lastTransitionTime") {
			last[phase] = c
		}
	}
	return slices.SortedFunc(maps.Values(last), func(a, b map[string]any) int {
		return cmp.Or(cmp.Compare(rules.Time(a, "lastTransitionTime"), rules.Time(b, "lastTransitionTime")),
			cmp.Compare(rules.Text(a, "status"), rules.Text(b, "status")))
	})
}

func endsBadly(c map[string]any) bool {
	return slices.Contains([]string{"Failed", "Aborted", "Aborting", "Terminated", "Terminating"}, rules.Text(c, "status"))
}

// passed returns a condition with only the phase and the time at which the job
// reached it.
func passed(c map[string]any) map[string]any {
	out := map[string]any{"status": rules.Text(c, "status")}
	if at := rules.Time(c, "lastTransitionTime"); at != "" {
		out["lastTransitionTime"] = at
	}
	return out
}

// volcanoState sets the state of a job: what the only cluster reports; of several
// clusters, Failed where the job failed or was aborted in any, else the worst
// phase, with the names of the clusters that are in it.
func volcanoState(status map[string]any, r rules.Reports) {
	failed := in(r, volcanoPhase, "Failed", "Aborted")
	rules.FromWorst("state", volcanoPhase, "Pending", volcanoPhases...)(status, r)
	state := rules.Object(status, "state")
	if len(r.Parts) < 2 || state == nil {
		return
	}
	phase := rules.Text(state, "phase")
	out := words.Pick(state, "phase", "reason", "message", "lastTransitionTime")
	switch {
	case len(failed) > 0:
		out["phase"], out["reason"], out["message"] = "Failed", "VolcanoJobFailed", "Job failed in clusters: "+rules.Names(failed)
	case phase != "Completed":
		out["message"] = "Job is " + phase + " in clusters: " + rules.Names(in(r, volcanoPhase, phase))
	}
	status["state"] = out
}

// in returns the clusters whose text at the path is one of phases.
func in(r rules.Reports, path string, phases ...string) []string {
	var out []string
	for _, p := range r.Parts {
		if slices.Contains(phases, rules.Text(p.Status, words.At(path)...)) {
			out = append(out, p.Cluster)
		}
	}
	return out
}
