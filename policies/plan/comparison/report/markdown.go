package report

import (
	"fmt"
	"strings"

	"github.com/flotilla-io/flotilla/policies/plan/comparison"
)

// MaxBytes is how long a comment is at most; GitHub takes 65,536 characters, and Bitbucket's cloud half of that.
const MaxBytes = 60_000

// MarkdownOptions are how a Comparison is written for a forge.
type MarkdownOptions struct {
	// Most is how many bytes are written at most; 0 means MaxBytes. Less than a few thousand leaves little of it.
	Most int
	// Whole says how to see all of it, such as "run flotilla plan"; it follows on how much was left out.
	Whole string
}

const (
	// mostListed are the rows of one list or table.
	mostListed = 50
	// mostNamed are the clusters that are named in one place.
	mostNamed = 10
	// mostLines are the lines of one difference.
	mostLines = 400
)

// Markdown returns the Comparison as forges show it. It is no longer than allowed: of many parts the first and the last
// stay, and it says how many were left out.
func Markdown(c comparison.Comparison, opts MarkdownOptions) string {
	if opts.Most <= 0 {
		opts.Most = MaxBytes
	}
	p := &pages{most: opts.Most, whole: opts.Whole}
	p.heading("**" + Summary(c) + "**")
	for _, note := range c.Notes {
		p.add(code(note))
	}
	p.risks(c.Risks)
	p.objects("Deleted", c.Changes, comparison.Deleted)
	p.objects("Left behind", c.Changes, comparison.Left)
	p.placements(c.Placements)
	p.restarts(c.Restarts)
	p.held(c.Held)
	p.differences("Created", c.Changes, comparison.Created)
	p.differences("Updated", c.Changes, comparison.Updated)
	p.objects("Suspended", c.Changes, comparison.Suspended)
	p.objects("Resumed", c.Changes, comparison.Resumed)
	p.objects("With another owner", c.Changes, comparison.Moved)
	return p.String()
}

// part is a piece of text that is written whole or not at all.
type part struct {
	text string
	// counts means that it counts among what was left out; headings do not.
	counts bool
}

// pages collects parts.
type pages struct {
	parts []part
	most  int
	whole string
}

func (p *pages) heading(text string) { p.parts = append(p.parts, part{text: text}) }
func (p *pages) add(text string)     { p.parts = append(p.parts, part{text, true}) }

// String returns the parts, and those in the middle not where they are too long together.
func (p *pages) String() string {
	total := 0
	for _, part := range p.parts {
		total += len(part.text) + 2
	}
	if total <= p.most {
		return join(p.parts)
	}
	room := p.most - len(p.left(len(p.parts))) - 4
	head, used := 0, 0
	for ; head < len(p.parts) && used+len(p.parts[head].text)+2 <= room*3/4; head++ {
		used += len(p.parts[head].text) + 2
	}
	tail := len(p.parts)
	for ; tail > head && used+len(p.parts[tail-1].text)+2 <= room; tail-- {
		used += len(p.parts[tail-1].text) + 2
	}
	left := 0
	for _, part := range p.parts[head:tail] {
		if part.counts {
			left++
		}
	}
	out := append(append(append([]part{}, p.parts[:head]...), part{text: p.left(left)}), p.parts[tail:]...)
	text := join(out)
	if len(text) > p.most { // not even the note fits
		return ""
	}
	return text
}

func (p *pages) left(n int) string {
	text := fmt.Sprintf("… %s left out here", counted(n, "part"))
	if p.whole != "" {
		text += ": " + code(p.whole) + " shows all"
	}
	return text + " …"
}

func join(parts []part) string {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = part.text
	}
	return strings.Join(texts, "\n\n") + "\n"
}

// lines adds a list, in parts of some lines each, so that a long one can be cut.
func (p *pages) lines(title string, all []string) {
	if len(all) == 0 {
		return
	}
	p.heading("### " + title)
	shown := all[:min(len(all), mostListed)]
	for begin := 0; begin < len(shown); begin += 10 {
		p.add(strings.Join(shown[begin:min(begin+10, len(shown))], "\n"))
	}
	if more := len(all) - len(shown); more > 0 {
		p.add(fmt.Sprintf("- and %d more", more))
	}
}

// names writes the clusters of something.
func names(clusters []string) string {
	shown := clusters[:min(len(clusters), mostNamed)]
	if len(clusters) == mostNamed+1 {
		shown = clusters
	}
	out := make([]string, len(shown), len(shown)+1)
	for i, name := range shown {
		out[i] = code(name)
	}
	if more := len(clusters) - len(shown); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return listed(out)
}

func (p *pages) risks(risks []comparison.Risk) {
	var all []string
	for _, r := range risks {
		text := fmt.Sprintf("- **%s** %s", r.Reason, code(r.Message))
		if len(r.Clusters) > 0 {
			text += " in " + names(r.Clusters)
		}
		all = append(all, text)
	}
	p.lines("⚠️ Risks", all)
}

func (p *pages) objects(title string, changes []comparison.Change, action comparison.Action) {
	var all []string
	for i := range changes {
		if c := &changes[i]; c.Action == action {
			all = append(all, fmt.Sprintf("- %s in %s%s", code(c.Object.String()), names(c.Clusters), tail(*c)))
		}
	}
	p.lines(title, all)
}

func (p *pages) placements(placements []comparison.Placement) {
	if len(placements) == 0 {
		return
	}
	p.heading("### Placement")
	var table strings.Builder
	table.WriteString("| template | | clusters | why |\n| --- | --- | --- | --- |\n")
	groups := alike(placements)
	for i, group := range groups {
		if i == mostListed {
			fmt.Fprintf(&table, "| %d more | | | |\n", len(groups)-i)
			break
		}
		placement := group[0]
		title, why := cell(listed(some(titles(group), mostNamed))), cell(placement.Why)
		for _, r := range rows(placement.Shifts) {
			fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", title, r.what, strings.ReplaceAll(names(r.clusters), "|", "¦"), why)
			title, why = "", ""
		}
	}
	p.add(strings.TrimSuffix(table.String(), "\n"))
}

func (p *pages) restarts(all []comparison.Restart) {
	var out []string
	for _, r := range all {
		out = append(out, fmt.Sprintf("- %s: %s in %s: %s", code(r.Object.String()), podsText(r), names(r.Clusters), code(r.Why)))
	}
	p.lines("Pods", out)
}

func (p *pages) held(all []comparison.Held) {
	var out []string
	for _, h := range all {
		out = append(out, fmt.Sprintf("- %s in %s: %s", code(h.Object.String()), names(h.Clusters), code(h.Why)))
	}
	p.lines("Stays as it is", out)
}

// differences adds what is created or updated, each difference once.
func (p *pages) differences(title string, changes []comparison.Change, action comparison.Action) {
	some := false
	for i := range changes {
		c := &changes[i]
		if c.Action != action {
			continue
		}
		if !some {
			p.heading("### " + title)
			some = true
		}
		p.add(fmt.Sprintf("%s%s: %s%s\n\n%s", code(c.Object.String()), same(c.Clusters), names(c.Clusters), tail(*c), block("diff", difference(*c))))
	}
}
