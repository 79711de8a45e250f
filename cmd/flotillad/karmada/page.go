package karmada

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/cmd/flotillad/features"
	"github.com/flotilla-io/flotilla/reconciler"
)

const intro = `# Flags of Karmada's components

Written by ` + "`flotillad flags`" + `; ` + "`make generate`" + ` renews it.

` + "`flotillad serve`" + ` is one program where Karmada has several: it takes the flags of all of them. Flags that
work here may have other defaults than in Karmada: ` + "`flotillad serve --help`" + ` tells them. Those without
effect are checked, and named in one line when it starts.

`

// page is the buffer for the page.
type page struct{ bytes.Buffer }

// Page writes the page that lists all flags, gates and controllers, as Markdown.
func Page(out io.Writer) error {
	p := &page{}
	p.WriteString(intro)
	p.flags(works, "Flags that work", "does")
	p.flags(idle, "Flags without effect", "why")
	p.flags(refused, "Flags that are refused", "instead")
	p.gates()
	p.controllers()
	_, err := out.Write(p.Bytes())
	return err
}

// table writes a heading and the first two rows of a table.
func (p *page) table(heading string, columns ...string) {
	fmt.Fprintf(p, "## %s\n\n", heading)
	p.row(columns...)
	p.row(slices.Repeat([]string{"---"}, len(columns))...)
}

func (p *page) row(cells ...string) { fmt.Fprintf(p, "| %s |\n", strings.Join(cells, " | ")) }

func (p *page) flags(e effect, heading, what string) {
	p.table(heading, "flag", "of Karmada's", what)
	for _, f := range all() {
		if f.effect == e {
			p.row("`--"+f.Name+"`", f.owners(), f.Here)
		}
	}
	p.WriteString("\n")
}

// owners returns the names of the components that have the flag, or "all".
func (f Flag) owners() string {
	if len(f.Of) == len(everyone) {
		return "all"
	}
	names := make([]string, 0, len(f.Of))
	for _, c := range f.Of {
		names = append(names, string(c))
	}
	return strings.Join(names, ", ")
}

func (p *page) gates() {
	p.table("Feature gates", "gate", "here", "what it switches")
	for _, g := range features.All() {
		is, does := "off", g.Here
		if g.Default {
			is = "on"
		}
		if g.Fixed {
			is, does = "always "+is, "nothing: "+g.Here
		}
		p.row("`"+g.Name+"`", is, does)
	}
	p.WriteString("\n`AllAlpha` and `AllBeta` switch those of a stage that are not named themselves. What works here is on, and\nbeta. Kubernetes' own gates are taken, too, by their names.\n\n")
}

func (p *page) controllers() {
	p.table("Controllers", "Karmada's name", "loop here")
	for _, c := range reconciler.Controllers() {
		does := "`" + c.Loop + "`"
		if c.Loop == "" {
			does = "none yet: " + c.Missing
		}
		p.row("`"+c.Name+"`", does)
	}
	fmt.Fprintf(p, `
`+"`--controllers`"+` takes these names and those of the loops: %s.
`+"`*`"+` is all of them but `+"`descheduler`"+`, which `+"`--failover=on`"+` adds; `+"`-name`"+` all but that one, wherever it stands. A loop that several controllers of Karmada's
are runs as a whole: to leave out one of them alone is refused with the loop's name.
`, "`"+strings.Join(reconciler.Names(), "`, `")+"`")
}
