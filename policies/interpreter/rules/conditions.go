package rules

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

const (
	statusTrue    = string(corev1.ConditionTrue)
	statusFalse   = string(corev1.ConditionFalse)
	statusUnknown = string(corev1.ConditionUnknown)
)

// Condition returns the condition of a type, not a copy; nil where there is none.
func Condition(conditions []any, conditionType string) map[string]any {
	for _, entry := range conditions {
		if c, ok := entry.(map[string]any); ok && Text(c, "type") == conditionType {
			return c
		}
	}
	return nil
}

// ConditionTrue reports whether the condition of a type is true.
func ConditionTrue(conditions []any, conditionType string) bool {
	return Text(Condition(conditions, conditionType), "status") == statusTrue
}

// Merge says how clusters' conditions of one type become one condition of the
// template: it is as wanted once it is so in every cluster; where it is not
// somewhere, it is not, and the message says where and why.
type Merge struct {
	// Type of the condition.
	Type string
	// Wanted is the status that is good news. Empty means True, and that a
	// cluster without the condition is unknown; with False, nothing is wrong in
	// a cluster without it.
	Wanted corev1.ConditionStatus
	// Optional conditions are not given in every cluster: those that report
	// a status without it have no say.
	Optional bool
	// Done is a reason that counts only once all clusters give it.
	Done string
	// Gravest is a reason that counts as soon as one cluster gives it.
	Gravest string
	// Quiet conditions have no reason while they are as wanted: theirs change
	// all the time.
	Quiet bool

	// alone: there is one cluster, which a message need not name.
	alone bool
}

// Bounds of what members say in conditions, in bytes.
const (
	mostReason  = 128
	mostMessage = 256
	// mostNamed is how many clusters a message names with what they say.
	mostNamed = 3
)

// WithConditions adds to what another rule reports the conditions that are
// merged, reduced to what does not change without news: type, status, reason,
// since when, and a message where something is not as wanted.
func WithConditions(reflect func(kinds.Object) (map[string]any, error), merges ...Merge) func(kinds.Object) (map[string]any, error) {
	return func(observed kinds.Object) (map[string]any, error) {
		status, err := reflect(observed)
		if status == nil || err != nil {
			return nil, err
		}
		given := List(observed.Object, "status", "conditions")
		var conditions []any
		for _, m := range merges {
			if c := Condition(given, m.Type); c != nil {
				conditions = append(conditions, m.reduce(c))
			}
		}
		if conditions == nil {
			return status, nil
		}
		out := maps.Clone(status)
		out["conditions"] = conditions
		return out, nil
	}
}

// wellFormed are the reasons that servers accept.
var wellFormed = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

func (m Merge) wanted() string { return cmp.Or(string(m.Wanted), statusTrue) }

// reduce returns a condition without what says nothing, and without what has
// an unexpected shape: servers refuse all of a status for one such field.
func (m Merge) reduce(c map[string]any) map[string]any {
	status := Text(c, "status")
	if status != statusTrue && status != statusFalse {
		status = statusUnknown
	}
	out := map[string]any{"type": m.Type, "status": status}
	set := func(field, value string) {
		if value != "" {
			out[field] = value
		}
	}
	set("lastTransitionTime", Time(c, "lastTransitionTime"))
	if status != m.wanted() || !m.Quiet {
		reason := Text(c, "reason")
		if reason = reason[:min(len(reason), mostReason)]; wellFormed.MatchString(reason) {
			set("reason", reason)
		}
	}
	if status != m.wanted() {
		set("message", excerpt.Message(Text(c, "message"), mostMessage))
	}
	return out
}

// Conditions merges conditions of clusters. The template's conditions of other
// types stay; those that no cluster gives any more are removed.
func Conditions(merges ...Merge) Step {
	return func(status map[string]any, r Reports) {
		current := List(status, "conditions")
		conditions := slices.DeleteFunc(slices.Clone(current), func(v any) bool {
			c, _ := v.(map[string]any)
			return slices.ContainsFunc(merges, func(m Merge) bool { return m.Type == Text(c, "type") })
		})
		for _, m := range merges {
			if c := m.merge(r, Condition(current, m.Type)); c != nil {
				conditions = append(conditions, c)
			}
		}
		if len(conditions) > 0 || len(current) > 0 {
			status["conditions"] = conditions
		}
	}
}

// reported is the condition as one cluster reports it.
type reported struct{ cluster, status, reason, message, since string }

func (m Merge) reported(parts []Part) (all []reported, given bool) {
	for _, p := range parts {
		c := Condition(List(p.Status, "conditions"), m.Type)
		switch {
		case c != nil:
			given = true
			c = m.reduce(c)
			all = append(all, reported{p.Cluster, Text(c, "status"), Text(c, "reason"), Text(c, "message"), Text(c, "lastTransitionTime")})
		case m.wanted() == statusFalse || m.Optional && p.Status != nil:
		default:
			all = append(all, reported{cluster: p.Cluster, status: statusUnknown, reason: "NotReported"})
		}
	}
	return all, given
}

func (m Merge) merge(r Reports, current map[string]any) map[string]any {
	all, given := m.reported(r.Parts)
	if !given {
		return nil
	}
	status := m.worst(all)
	all = slices.DeleteFunc(all, func(s reported) bool { return s.status != status })
	since := ""
	for _, s := range all {
		since = max(since, s.since)
	}
	if Text(current, "status") == status {
		since = cmp.Or(Time(current, "lastTransitionTime"), since)
	}
	out := map[string]any{"type": m.Type, "status": status, "reason": m.reason(all), "message": ""}
	if status != m.wanted() && !m.alone {
		out["message"] = message(all)
	}
	// Where no cluster says since when, there is a time all the same: most kinds
	// must have one.
	if since = cmp.Or(since, Time(r.Template.Object, "metadata", "creationTimestamp")); since != "" {
		out["lastTransitionTime"] = since
	}
	return out
}

// worst returns the status that is furthest from the one that is wanted.
func (m Merge) worst(all []reported) string {
	worst := m.wanted()
	for _, s := range all {
		switch s.status {
		case m.wanted():
		case statusUnknown:
			worst = statusUnknown
		default:
			return s.status
		}
	}
	return worst
}

// reason returns the gravest reason of those that are given, else the first
// that is not the one of those who are done.
func (m Merge) reason(all []reported) string {
	reason := ""
	for _, s := range all {
		if s.reason == "" {
			continue
		}
		if s.reason == m.Gravest {
			return s.reason
		}
		if reason == "" || reason == m.Done {
			reason = s.reason
		}
	}
	return cmp.Or(reason, "Reported")
}

// message names clusters with what they say.
func message(all []reported) string {
	var out strings.Builder
	for i, s := range all {
		if i == mostNamed {
			_, _ = fmt.Fprintf(&out, "; and %d more", len(all)-mostNamed)
			break
		}
		if i > 0 {
			out.WriteString("; ")
		}
		out.WriteString(s.cluster + ": " + cmp.Or(s.message, s.reason, s.status))
	}
	return out.String()
}

// Time returns the time at the path as servers write it, in UTC and whole
// seconds, so that texts sort as times do; empty where there is none.
func Time(m map[string]any, path ...string) string {
	at, err := time.Parse(time.RFC3339, Text(m, path...))
	if err != nil || at.IsZero() {
		return ""
	}
	return metav1.NewTime(at).UTC().Format(time.RFC3339)
}
