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

// Condition returns the condition of a type, not as a copy; nil where there is
// none.
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

// Merge is how conditions of one type, each from one cluster, become one
// condition of the template. It has the wanted status once it has it in every
// cluster. Otherwise the message names the clusters in which it has not, and why.
type Merge struct {
	// Type of the condition.
	Type string
	// Wanted is the status of a healthy cluster. Empty means True: a cluster
	// without the condition then counts as Unknown. With False, a cluster without
	// the condition counts as healthy.
	Wanted corev1.ConditionStatus
	// Optional means that not every cluster has the condition: one that reports a
	// status without it is ignored.
	Optional bool
	// Done is a reason that is taken only where all clusters report it.
	Done string
	// Gravest is a reason that is taken as soon as one cluster reports it.
	Gravest string
	// Quiet leaves out the reason while the condition has the wanted status, as it
	// changes all the time.
	Quiet bool

	// alone means that there is only one cluster, which a message need not name.
	alone bool
}

// Bounds of what a condition of a member may hold, in bytes.
const (
	mostReason  = 128
	mostMessage = 256
	// mostNamed is how many clusters a message quotes.
	mostNamed = 3
)

// WithConditions adds conditions to what another rule reports, reduced to what
// changes only for a reason: type, status, reason and time, and a message where
// the status is not as wanted.
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

// wellFormed matches the reasons that API servers accept.
var wellFormed = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

func (m Merge) wanted() string { return cmp.Or(string(m.Wanted), statusTrue) }

// reduce returns a condition without fields that say nothing new, and without those
// of an unexpected form: for one such field, an API server would refuse the whole
// status.
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

// Conditions merges the conditions that clusters report. Conditions of the
// template that are of other types stay; those that no cluster reports any more
// are removed.
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
	// Most kinds require a time. Where no cluster reports one, that of the
	// template's creation is as good as any, and does not change.
	if since = cmp.Or(since, Time(r.Template.Object, "metadata", "creationTimestamp")); since != "" {
		out["lastTransitionTime"] = since
	}
	return out
}

// worst returns the status that is furthest from the wanted one: its opposite,
// then Unknown.
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

// reason returns m.Gravest if any cluster reports it, else the first reason that
// is not m.Done.
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

// message names clusters, each with its message, reason or status.
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

// Time returns the time at the path in UTC and whole seconds, as API servers
// write it, so that texts sort as times do; empty where there is none.
func Time(m map[string]any, path ...string) string {
	at, err := time.Parse(time.RFC3339, Text(m, path...))
	if err != nil || at.IsZero() {
		return ""
	}
	return metav1.NewTime(at).UTC().Format(time.RFC3339)
}
