package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
)

// Unchanged is what is said of a Comparison that is empty.
const Unchanged = "Nothing changes in any cluster."

// Summary returns one line about a Comparison, such as for the status of a commit.
func Summary(c comparison.Comparison) string {
	if c.Supposed != "" {
		text := summary(c)
		return "If " + excerpt.Inline(c.Supposed) + ": " + strings.ToLower(text[:1]) + text[1:]
	}
	return summary(c)
}

func summary(c comparison.Comparison) string {
	if c.Empty() {
		return Unchanged
	}
	s := c.Summary
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{s.Deleted, "deleted"}, {s.Left, "left behind"}, {s.Created, "created"}, {s.Updated, "updated"}, {s.Moved, "with another owner"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	text := fmt.Sprintf("%s in %s", change(s.Objects), counted(s.Clusters, "cluster"))
	switch {
	case s.Objects == 0 && slices.ContainsFunc(c.Risks, moreThanListed):
		text = "More changes than is listed"
	case s.Objects == 0:
		text = "No object changes"
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if s.Restarts > 0 {
		text += fmt.Sprintf("; %s", counted(int(s.Restarts), "pod")+" restart")
		if s.Restarts == 1 {
			text += "s"
		}
	}
	if n := len(c.Risks); n > 0 {
		text += "; " + counted(n, "risk")
	}
	return text
}

// moreThanListed reports whether a risk is about changes that are not listed.
func moreThanListed(r comparison.Risk) bool {
	return slices.Contains([]string{comparison.RiskNamespace, comparison.RiskDefinition, comparison.RiskVolume, comparison.RiskNotFollowed}, r.Reason)
}

func change(objects int) string {
	if objects == 1 {
		return "1 object changes"
	}
	return fmt.Sprintf("%d objects change", objects)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// some returns the first names of a list, and how many more there are; all of them for a most of zero.
func some(names []string, most int) []string {
	if most == 0 || len(names) <= most+1 {
		return names
	}
	return append(slices.Clone(names[:most]), fmt.Sprintf("%d more", len(names)-most))
}

// listed writes names as a sentence has them.
func listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// same says in how many clusters something is the same.
func same(clusters []string) string {
	if len(clusters) == 1 {
		return ""
	}
	return fmt.Sprintf(", the same in %d clusters", len(clusters))
}

// row is a change of a placement that clusters share.
type row struct {
	what     string
	clusters []string
}

// rows groups the shifts of a placement: what is lost, what is gained, and what replicas become.
func rows(shifts []comparison.Shift) []row {
	var out []row
	for _, losing := range []bool{true, false} {
		for _, s := range shifts {
			if (s.After == nil) != losing {
				continue
			}
			what := shiftText(s)
			i := slices.IndexFunc(out, func(r row) bool { return r.what == what })
			if i < 0 {
				i, out = len(out), append(out, row{what: what})
			}
			out[i].clusters = append(out[i].clusters, s.Cluster)
		}
	}
	return out
}

func shiftText(s comparison.Shift) string {
	switch {
	case s.After == nil && *s.Before == 0:
		return "lost"
	case s.After == nil:
		return "lost, with " + counted(int(*s.Before), "replica")
	case s.Before == nil && *s.After == 0:
		return "gained"
	case s.Before == nil:
		return "gained, with " + counted(int(*s.After), "replica")
	default:
		return fmt.Sprintf("%d → %s", *s.Before, counted(int(*s.After), "replica"))
	}
}

// tail is what is to be said of a change besides.
func tail(c comparison.Change) string {
	switch {
	case c.Unknown:
		return "; what is there now is not known"
	case c.Suspended:
		return "; it does not get there before dispatching is resumed"
	default:
		return ""
	}
}

// podsText is what becomes of the pods of a workload.
func podsText(r comparison.Restart) string {
	pods := "its pods"
	if r.Pods != nil {
		pods = counted(int(*r.Pods), "pod")
	}
	one := r.Pods != nil && *r.Pods == 1
	switch {
	case r.Effect == comparison.Restarts && one:
		return pods + " restarts"
	case r.Effect == comparison.Restarts:
		return pods + " restart"
	case r.Effect == comparison.Stays && one:
		return pods + " runs on"
	case r.Effect == comparison.Stays:
		return pods + " run on"
	case r.Effect == comparison.Refused:
		return "the change will be refused"
	default:
		return pods + " may restart"
	}
}
