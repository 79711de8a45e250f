package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/explain/columns"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TextOptions are how much of an explanation is written. The zero value is for what fits on a screen.
type TextOptions struct {
	// All gives every cluster and every change a line of its own.
	All bool
	// Width is the width of the screen, in columns; 0 where that is not known. No more than 100 are used.
	Width int
}

// Text returns the explanation for people, on lines of at most 100 columns, or of
// the screen's width if that is less, unless a word is longer.
func (e Explanation) Text(opts TextOptions) string {
	w := &writer{opts: opts}
	w.head(e)
	w.problems(e.Problems)
	w.policies(e.Policies)
	w.placement(e)
	w.overrides(e.Overrides)
	w.delivery(e.Delivery)
	return excerpt.Visible(w.String()) // parts of it come from members and manifests, and may hold control characters
}

// writer writes an explanation section by section.
type writer struct {
	strings.Builder
	opts TextOptions
}

// Width implements columns.Sized.
func (w *writer) Width() int {
	if w.opts.Width <= 0 {
		return columns.Width
	}
	return min(w.opts.Width, columns.Width)
}

func (w *writer) line(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }

func (w *writer) section(title string) { w.line("\n%s", title) }

func (w *writer) head(e Explanation) {
	title := fmt.Sprintf("%s (%s)", e.Resource, e.Resource.APIVersion)
	if e.Resource.Replicas != nil {
		title += fmt.Sprintf(", %d %s", *e.Resource.Replicas, plural(int(*e.Resource.Replicas), "replica"))
	}
	if len(e.Resource.Components) > 0 {
		title += ", a set of " + componentsText(e.Resource.Components)
	}
	if !e.Resource.Stored {
		title += ", not on the control plane"
	}
	w.line("%s", title)
	facts := columns.Table{Plain: true}
	if e.Carries != nil {
		facts.Add("  carries", e.Carries.text())
	} else {
		facts.Add("  carried by", e.Carried.text())
	}
	if e.Placement != nil {
		e.Placement.facts(&facts)
	}
	if e.Delivery != nil {
		facts.Add("  delivery", e.Delivery.text())
	}
	if len(e.Unread) > 0 {
		facts.Add("  not read", strings.Join(e.Unread, ", ")+": what depends on it is left out or may be wrong")
	}
	facts.Write(w)
}

func (c Carries) text() string {
	text := fmt.Sprintf("%d %s", c.Templates, plural(int(c.Templates), "template"))
	if c.Templates > 0 {
		text += fmt.Sprintf(": %d with a binding, %d placed", c.Bindings, c.Placed)
	}
	return text
}

func (c Carried) text() string {
	switch {
	case c.By != nil && c.Now != nil && *c.By == *c.Now:
		return c.Why
	case c.By != nil && c.Now != nil:
		return fmt.Sprintf("%s; from now on %s", c.By, c.Why)
	case c.By != nil:
		return fmt.Sprintf("%s, no longer: %s", c.By, c.Why)
	case c.Now != nil:
		return "nobody yet; it would be " + c.Why
	default:
		return "nobody: " + c.Why
	}
}

func (p *Placement) facts(t *columns.Table) {
	if s := p.Stands; s == nil {
		t.Add("  runs on", "nowhere yet: it has no binding")
	} else {
		text := s.text()
		if p.Attached {
			text = targetsText(s.Clusters) + ", as what needs it does"
		}
		t.Add("  runs on", text)
		if len(s.Leaving) > 0 {
			names := make([]string, len(s.Leaving))
			for i, l := range s.Leaving {
				if names[i] = l.Cluster; l.Reason+l.Message != "" {
					names[i] += " (" + cmp.Or(l.Message, l.Reason) + ")"
				}
			}
			t.Add("  leaving", list(names, maxNamed))
		}
		for _, l := range s.Leaves {
			label, text := "  leaves", l
			if stays, is := strings.CutPrefix(l, "stays in "); is {
				label, text = "  stays in", stays
			}
			t.Add(label, text)
		}
		if s.Moved != "" {
			t.Add("  moved", s.Moved)
		}
		for _, to := range s.Returns {
			t.Add("  returns", to)
		}
		if len(s.RequiredBy) > 0 {
			t.Add("  needed by", strings.Join(s.RequiredBy, ", "))
		}
	}
	for _, g := range p.Groups {
		t.Add("  group", g.text())
	}
	if p.Attached {
		return
	}
	if p.Now == nil {
		t.Add("  now", "not known: the clusters could not be read")
		return
	}
	text := p.Now.text(p.Stands != nil)
	if len(p.Now.Passed) > 0 {
		text += "; affinities not tried again until a rebalance: " + list(p.Now.Passed, maxNamed)
	}
	t.Add("  now", text)
}

func (s *Standing) text() string {
	text := targetsText(s.Clusters)
	if s.Term != "" {
		text += ", by affinity " + s.Term
	}
	switch {
	case s.Reason == "":
		text += "; there is no record of a decision"
	case s.At != nil:
		text += fmt.Sprintf("; decided %s: %s", s.At.UTC().Format(time.RFC3339), s.Reason)
	default:
		text += "; decided: " + s.Reason
	}
	return text
}

func (n *Prospect) text(stands bool) string {
	text := "would run on " + targetsText(n.Clusters)
	switch {
	case len(n.Plugins) > 0 && n.Error == "":
		return "not known: " + n.NotDue
	case n.Same && (n.NotDue == notCarried || n.NotDue == quotaExceeded):
		return "nothing is decided: " + n.NotDue
	case n.Same && n.Due == "":
		return "a decision would say the same"
	case n.Error != "":
		text = "no placement is found"
	case n.Same:
		text = "would stay where it is, decided anew, too"
	case n.Term != "":
		text += ", by affinity " + n.Term
	}
	switch {
	case n.Due != "" && stands:
		return text + "; a decision is due: " + n.Due
	case n.Due == "":
		return text + "; it is not decided: " + n.NotDue
	}
	return text
}

// maxNamed is how many clusters a line names; the rest are counted.
const maxNamed = 10

func targetsText(targets []Target) string {
	if len(targets) == 0 {
		return "no cluster"
	}
	parts := make([]string, len(targets))
	for i, t := range targets {
		switch {
		case len(t.Components) > 0:
			parts[i] = fmt.Sprintf("%s (%s)", t.Name, componentsText(t.Components))
		case t.Replicas > 0:
			parts[i] = fmt.Sprintf("%s %d", t.Name, t.Replicas)
		default:
			parts[i] = t.Name
		}
	}
	return list(parts, maxNamed)
}

func componentsText(components map[string]int32) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(components)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, components[name]))
	}
	return strings.Join(parts, ", ")
}

func (g Group) text() string {
	text := "is to run with the others of " + g.Name
	if g.Apart {
		text = "is to run apart from the others of " + g.Name
	}
	if len(g.Clusters) == 0 {
		return text + ", of which none runs yet"
	}
	return text + ", in " + list(g.Clusters, maxNamed)
}

// list joins names, of which it counts those beyond most; zero means all.
func list(names []string, most int) string {
	if more := len(names) - most; most > 0 && more > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

func (d *Delivery) text() string {
	conflicts := "an object that is in the way is left alone (Abort)"
	if d.Conflicts == "Overwrite" {
		conflicts = "an object that is in the way is taken over (Overwrite)"
	}
	deletion := "removed with the template"
	if d.Preserved {
		deletion = "kept when the template is deleted"
	}
	text := conflicts + "; " + deletion
	if d.Suspended {
		text = "suspended; " + text
	}
	return text
}

func (w *writer) problems(problems []Problem) {
	if len(problems) == 0 {
		return
	}
	w.section("PROBLEMS")
	t := columns.Table{Plain: true, Hangs: true}
	for i, p := range problems {
		where := ""
		if len(p.Clusters) > 0 {
			where = " in " + list(p.Clusters, w.most())
		}
		// One line, so that no text of a cluster can look like a row.
		t.Add(fmt.Sprintf("  %d", i+1), fmt.Sprintf("%s%s: %s", p.Reason, where, excerpt.Line(p.Message)))
		if p.Next != "" {
			t.AddWhole("", "next: "+p.Next)
		}
	}
	t.Write(w)
}

// most is how many clusters a list names; zero means all.
func (w *writer) most() int {
	if w.opts.All {
		return 0
	}
	return maxNamed
}

func (w *writer) policies(policies []Policy) {
	if len(policies) == 0 {
		return
	}
	w.section("POLICIES")
	t := columns.Table{}
	t.Add("  POLICY", "OUTCOME", "WHY")
	for _, p := range policies {
		t.Add("  "+p.String(), string(p.Outcome), p.Why)
	}
	t.Write(w)
}

func (w *writer) delivery(d *Delivery) {
	if d == nil || len(d.Clusters) == 0 {
		return
	}
	applied, healthy, unknown, kept, wanted := 0, 0, 0, 0, 0
	t := columns.Table{}
	t.Add("  CLUSTER", "APPLIED", "HEALTH", "WHY")
	for _, c := range d.Clusters {
		fine := c.Applied != nil && *c.Applied && !c.Leaving && c.Silent == ""
		if !c.Leaving {
			wanted++
			if c.Silent != "" {
				unknown++
			}
			if c.Suspended {
				kept++
			}
		}
		if fine {
			applied++
		}
		if fine && c.Health == "Healthy" {
			healthy++
			if !w.opts.All && !c.Suspended {
				continue
			}
		}
		t.Add(c.row()...)
	}
	title := fmt.Sprintf("DELIVERY: applied in %d, healthy in %d of %d", applied, healthy, wanted)
	if unknown > 0 {
		title += fmt.Sprintf(", unknown in %d", unknown)
	}
	if kept > 0 {
		title += fmt.Sprintf(", changes kept from %d", kept)
	}
	if d.AsReported {
		title += ", " + rollup.AsReported
	}
	w.section(title)
	if t.Rows() > 1 {
		t.Write(w)
	}
}

func (c Delivered) row() []string {
	applied, health, why := "not yet", c.Health, cmp.Or(c.Message, c.Ails)
	switch {
	case c.Applied != nil && *c.Applied:
		applied = "yes"
	case c.Stays, c.Message != "" && c.Message != rollup.Overdue && c.Message != rollup.Recalled && !c.Outdated:
		applied = "no"
	}
	if health == "" {
		health = "Unknown"
	}
	if c.Silent != "" {
		heard := cmp.Or(c.Message, "nothing was ever heard of it")
		if c.Applied != nil || c.Outdated {
			heard = "last heard: applied " + applied + ", " + strings.TrimSuffix(health+": "+why, ": ")
		}
		applied, health, why = "unknown", "Unknown", c.Silent+"; "+heard
	}
	switch {
	case c.Suspended:
		why = strings.TrimPrefix(why+"; changes do not reach it", "; ")
	case c.Leaving:
		why = strings.TrimPrefix(why+"; "+cmp.Or(c.Kept, "leaving"), "; ")
	case c.Outdated && c.Ails != "":
		why += ": " + c.Ails
	case why == "" && c.Applied == nil:
		why = "nothing is known of it"
	}
	return []string{"  " + c.Cluster, applied, health, why}
}
