package rules

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

const (
	// MostConditions is how many types of conditions the status of a template may
	// have.
	MostConditions = 32
	// mostText is how long a text that members report may be in the status of a
	// template, in bytes.
	mostText = 1024
)

// adverse are types of conditions that many kinds have and that mean trouble:
// such a condition is true of the template as soon as it is true in one cluster.
// All others are true of the template once they are true in every cluster.
var adverse = []string{
	"Degraded", "Error", "Failed", "Failure", "Reconciling", "ReplicaFailure", "Stalled", "Suspended", "Paused",
}

// EveryCondition merges the conditions of all types that clusters report. Those
// of the types in anywhere, and those that are adverse for every kind, are true
// of the template as soon as they are true in one cluster. The conditions of an
// only cluster are taken as they are, without its name.
func EveryCondition(anywhere ...string) Step {
	return func(status map[string]any, r Reports) {
		current := List(status, "conditions")
		var merges []Merge
		for _, t := range conditionTypes(current, r) {
			m := Merge{Type: t, alone: len(r.Parts) == 1}
			if slices.Contains(adverse, t) || slices.Contains(anywhere, t) {
				m.Wanted = corev1.ConditionFalse
			}
			merges = append(merges, m)
		}
		Conditions(merges...)(status, r)
		merged := []any{}
		for _, m := range merges {
			if c := Condition(List(status, "conditions"), m.Type); c != nil {
				merged = append(merged, complete(c, Condition(current, m.Type), m, r))
			}
		}
		delete(status, "conditions")
		if len(merged) > 0 || len(current) > 0 {
			status["conditions"] = merged
		}
	}
}

// conditionTypes returns the types that clusters report or the template has,
// sorted, and no more than MostConditions.
func conditionTypes(current []any, r Reports) []string {
	types := map[string]bool{}
	collect := func(list []any) {
		for _, c := range list {
			c, _ := c.(map[string]any)
			if t := Text(c, "type"); t != "" && len(t) < mostText {
				types[t] = true
			}
		}
	}
	collect(current)
	for _, p := range r.Parts {
		collect(List(p.Status, "conditions"))
	}
	sorted := slices.Sorted(maps.Keys(types))
	return sorted[:min(len(sorted), MostConditions)]
}

// complete adds to a merged condition the fields that its kind has beyond the
// common ones, and removes those that no cluster's condition has: API servers
// drop fields that the schema does not have, and refuse a status without those
// that it requires.
func complete(merged, current map[string]any, m Merge, r Reports) map[string]any {
	var given []map[string]any
	for _, p := range r.Parts {
		if c := Condition(List(p.Status, "conditions"), m.Type); c != nil {
			given = append(given, c)
		}
	}
	out := maps.Clone(merged)
	has := func(field string) bool {
		return slices.ContainsFunc(r.Parts, func(p Part) bool {
			return slices.ContainsFunc(Objects(p.Status, "conditions"), func(c map[string]any) bool { return c[field] != nil })
		})
	}
	if Text(out, "message") == "" {
		out["message"] = agreed(given)
	}
	// Some kinds require a time, and their controllers set none. A fixed time
	// causes no write at each reconcile, as the present would.
	if Text(out, "lastTransitionTime") == "" {
		out["lastTransitionTime"] = cmp.Or(since(given), epoch)
	}
	for _, field := range []string{"lastTransitionTime", "reason", "message"} {
		if !has(field) && (field != "reason" || out[field] == "Reported") && (field != "message" || out[field] == "") {
			delete(out, field)
		}
	}
	for _, field := range []string{"lastUpdateTime", "lastProbeTime"} {
		if at := Text(out, "lastTransitionTime"); has(field) && at != "" {
			out[field] = at
		}
	}
	if !has("observedGeneration") {
		return out
	}
	// The generation stays until all clusters report about the new one: a client
	// that waits for it would otherwise take the merge of old reports for the
	// answer.
	if generation := Number(current, "observedGeneration"); generation > 0 {
		out["observedGeneration"] = generation
	}
	if generation := r.Template.GetGeneration(); generation > 0 && judged(m, r) {
		out["observedGeneration"] = generation
	}
	return out
}

// Plain returns a condition with only the common fields, in a form that API
// servers accept, and lastUpdateTime for kinds that have it.
func Plain(c map[string]any) map[string]any {
	out := Merge{Type: Text(c, "type")}.reduce(c)
	if message := excerpt.Message(Text(c, "message"), mostText); message != "" {
		out["message"] = message
	}
	if at := Time(c, "lastUpdateTime"); at != "" {
		out["lastUpdateTime"] = at
	}
	return out
}

// epoch stands for the time of a condition that has none.
const epoch = "1970-01-01T00:00:00Z"

// since returns the latest time at which any of the conditions changed; empty
// where none has a time.
func since(given []map[string]any) string {
	at := ""
	for _, c := range given {
		at = max(at, Time(c, "lastTransitionTime"))
	}
	return at
}

// agreed returns the message that all conditions share; empty where they differ.
func agreed(given []map[string]any) string {
	if len(given) == 1 {
		return excerpt.Message(Text(given[0], "message"), mostText)
	}
	message := ""
	for i, c := range given {
		own := Text(c, "message")
		if i > 0 && own != message || len(own) > mostText {
			return ""
		}
		message = own
	}
	return message
}

// judged reports whether the condition is about the template's latest generation
// in every cluster.
func judged(m Merge, r Reports) bool {
	for _, p := range r.Parts {
		if Number(p.Status, FieldTemplateGeneration) < r.Template.GetGeneration() {
			return false
		}
		c := Condition(List(p.Status, "conditions"), m.Type)
		if c == nil && m.Wanted == corev1.ConditionFalse {
			continue
		}
		if Number(c, "observedGeneration") < Number(p.Status, FieldGeneration) {
			return false
		}
	}
	return true
}
