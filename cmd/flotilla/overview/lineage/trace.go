package lineage

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/cmd/flotilla/screen"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/explain/hint"
)

// Object names an object.
type Object struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Cluster is its cluster; empty for the control plane.
	Cluster string `json:"cluster,omitempty"`
}

// Ours returns a sentence about an object on which the control plane itself acts, which needs no policy; empty for others.
func (o Object) Ours() string {
	ours := hint.Object{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}.Ours()
	if rest, begins := strings.CutPrefix(ours, "the "); begins {
		return "The " + rest
	}
	return ours
}

// String returns "Deployment shop/web", or "Deployment shop/web in east".
func (o Object) String() string {
	out := o.Kind + " " + o.path()
	if o.Cluster != "" {
		out += " in " + o.Cluster
	}
	return out
}

func (o Object) path() string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// Trace leads from the commit of an object to the clusters in which it runs.
type Trace struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"` // ObjectTrace
	// Object is the requested object.
	Object Object `json:"object"`
	// Owners lead from a member's object to the one that the fleet applied.
	Owners []Object `json:"owners,omitempty"`
	// Template is the object on the control plane; nil if that is the requested one.
	Template *Object `json:"template,omitempty"`
	Source   *Source `json:"source,omitempty"`
	Commit   *Commit `json:"commit,omitempty"`
	File     *File   `json:"file,omitempty"`
	// Applier is the Kustomization that applied the template.
	Applier *Applier `json:"kustomization,omitempty"`
	// Managers are the field managers of the template, besides its Kustomization.
	Managers  []string   `json:"managers,omitempty"`
	Policy    *Object    `json:"policy,omitempty"`
	Overrides []Override `json:"overrides,omitempty"`
	Binding   *Binding   `json:"binding,omitempty"`
	Clusters  []Delivery `json:"clusters,omitempty"`
	// Notes explain what could not be found out, and what that means.
	Notes []string `json:"notes,omitempty"`
}

// Source is where commits come from.
type Source struct {
	Object
	URL string `json:"url"`
	// Reference is what is followed, such as "branch main".
	Reference string          `json:"reference"`
	State     situation.State `json:"state"`
	Message   string          `json:"message,omitempty"`
	// History says that what was fetched last is not known to follow what was before.
	History string `json:"history,omitempty"`
}

// Commit is the one that was applied.
type Commit struct {
	// Revision is the revision in Flux's form: main@sha1:9f2c….
	Revision string `json:"revision"`
	Author   string `json:"author,omitempty"`
	Subject  string `json:"subject,omitempty"`
	Date     string `json:"date,omitempty"`
	// Signed is who signed it, where its source asks for that.
	Signed string `json:"signed,omitempty"`
	// Unknown is why author and subject are not known.
	Unknown string `json:"unknown,omitempty"`
	// Artifact means that there is no commit that anybody knows: the revision is that of an artifact.
	Artifact bool `json:"artifact,omitempty"`
}

// File is the place of the object in the repository.
type File struct {
	Path string `json:"path,omitempty"`
	// Line is its first line, from 1; 0 if it is generated from the file.
	Line int `json:"line,omitempty"`
	// LastChange is the applied commit that last changed the file; nil if there is no clone of the
	// repository to read it from.
	LastChange *Commit `json:"lastChange,omitempty"`
	// Included is where the file is included from; nil if it is of the source itself, as far as that is known.
	Included *Included `json:"included,omitempty"`
	// Submodule is where the file is from, if that is a submodule; nil otherwise, and if it is not known.
	Submodule *Submodule `json:"submodule,omitempty"`
	// Unknown is why the file is not known.
	Unknown string `json:"unknown,omitempty"`
}

// Applier is a Kustomization.
type Applier struct {
	Object
	Path     string          `json:"path"`
	Revision string          `json:"revision,omitempty"`
	State    situation.State `json:"state"`
	Message  string          `json:"message,omitempty"`
}

// Override is a policy that changed the manifests of clusters.
type Override struct {
	Object
	Clusters []string `json:"clusters"`
}

// Binding is the placement of the template.
type Binding struct {
	Object
	// Decided is the time of the decision, as RFC 3339; empty if it is not recorded.
	Decided string `json:"decided,omitempty"`
	// Outcome is the reason of the decision: Success, NoClusterFit, …
	Outcome string `json:"outcome,omitempty"`
	Message string `json:"message,omitempty"`
	// Fault is what in the template, or in a cluster's object, cannot be interpreted.
	Fault string `json:"fault,omitempty"`
	// Moved describes the last move of the template; empty if it has left no cluster, or is still leaving one.
	Moved string `json:"moved,omitempty"`
	// Released is true if no policy propagates the template any more: what runs in clusters
	// keeps running.
	Released bool `json:"released,omitempty"`
}

// Delivery is the template in one cluster.
type Delivery struct {
	Cluster  string `json:"cluster"`
	Replicas int32  `json:"replicas,omitempty"`
	// Work has the manifest; nil if there is none.
	Work    *Object         `json:"work,omitempty"`
	State   situation.State `json:"state"`
	Applied string          `json:"applied"` // yes, no, not yet, or not known
	Health  string          `json:"health,omitempty"`
	Message string          `json:"message,omitempty"`
	// Member is the member's object; nil if it was not read.
	Member *Member `json:"member,omitempty"`
}

// Member is a member's response about an object.
type Member struct {
	UID     string `json:"uid,omitempty"`
	Created string `json:"created,omitempty"`
	// Generation is the generation in the member.
	Generation int64 `json:"generation,omitempty"`
	// Ready is for example "2/2", if the object has replicas.
	Ready string `json:"ready,omitempty"`
	// Error is why there is no response.
	Error string `json:"error,omitempty"`
}

// TextOptions change how a trace is written.
type TextOptions struct {
	// Width is how many characters a line may have; 0 means no wrapping.
	Width int
}

// Text writes the trace for people.
func (t Trace) Text(w io.Writer, opts TextOptions) error {
	var out strings.Builder
	title := t.Object.String()
	if t.Object.APIVersion != "" {
		title += " (" + t.Object.APIVersion + ")"
	}
	fmt.Fprintf(&out, "%s\n", strings.Join(screen.Wrap(title, opts.Width), "\n"))
	t.way(&out, opts.Width)
	t.clusters(&out, opts.Width)
	for _, note := range t.Notes {
		fmt.Fprintf(&out, "\n%s\n", strings.Join(screen.Wrap(excerpt.Line(note), opts.Width), "\n"))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// way writes the lines from the repository to the placement.
func (t Trace) way(out *strings.Builder, width int) {
	lines := t.lines()
	if len(lines) > 0 {
		out.WriteString("\n")
	}
	titles := 0
	for _, line := range lines {
		titles = max(titles, len(line.title))
	}
	for _, line := range lines {
		for i, part := range screen.Wrap(excerpt.Line(line.text), less(width, titles+4)) {
			title := line.title
			if i > 0 {
				title = ""
			}
			fmt.Fprintf(out, "  %-*s  %s\n", titles, title, part)
		}
	}
}

// less returns a width minus an indent; 0 stays 0.
func less(width, indent int) int {
	if width <= 0 {
		return 0
	}
	return max(width-indent, 1)
}

type line struct{ title, text string }

// after returns text after a separator; empty for none.
func after(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

// lines returns everything except the clusters, from the repository to the placement.
func (t Trace) lines() []line {
	var out []line
	add := func(title, format string, args ...any) { out = append(out, line{title, fmt.Sprintf(format, args...)}) }
	if s := t.Source; s != nil {
		add("repository", "%s, %s, %s%s", s.URL, s.Reference, s.Object, unless(s.State, s.Message))
		if s.History != "" {
			add("", "%s", s.History)
		}
	}
	out = append(out, t.Commit.lines()...)
	out = append(out, t.written()...)
	if a := t.Applier; a != nil {
		add("applied by", "%s, path %s%s", a.Object, a.Path, unless(a.State, a.Message))
	}
	switch managers := strings.Join(t.Managers, ", "); {
	case managers != "" && t.Applier != nil:
		add("written by", "%s, too: what the %s says is put back when the Kustomization is reconciled next", managers, t.Commit.word())
	case managers != "":
		add("written by", "%s; no Kustomization applies it", managers)
	}
	if t.Template != nil {
		add("template", "%s", t.Template)
	}
	if t.Policy != nil {
		add("policy", "%s", t.Policy)
	}
	if t.Policy == nil && t.Binding != nil && t.Binding.Released {
		add("policy", "none any more")
	}
	for _, o := range t.Overrides {
		add("override", "%s in %s", o.Object, strings.Join(o.Clusters, ", "))
	}
	if b := t.Binding; b != nil {
		text := b.String()
		if b.Outcome != "" {
			text += ", decided " + b.Decided + ": " + b.Outcome
		}
		if b.Message != "" && b.Outcome != "Success" {
			text += ": " + b.Message
		}
		add("binding", "%s", text)
		if b.Moved != "" {
			add("moved", "%s", b.Moved)
		}
		if b.Fault != "" {
			add("", "not understood: %s", b.Fault)
		}
	}
	for _, o := range slices.Backward(t.Owners) { // from the fleet's on down
		add("owner", "%s", o)
	}
	return out
}

// written returns in which file of the repository the template is written.
func (t Trace) written() []line {
	f := t.File
	if f == nil {
		return nil
	}
	var out []line
	add := func(title, format string, args ...any) { out = append(out, line{title, fmt.Sprintf(format, args...)}) }
	switch {
	case f.Unknown != "":
		add("file", "not known: %s", f.Unknown)
	case f.Line > 0:
		add("file", "%s:%d", f.Path, f.Line)
	default:
		add("file", "%s", f.Path)
	}
	if i := f.Included; i != nil {
		add("included", "from %s, %s, %s", i.Object, i.Revision, i.Path)
	}
	if s := f.Submodule; s != nil {
		add("submodule", "%s, of %s, sha1:%s, %s", s.Directory, s.URL, s.Commit, s.Path)
	}
	if changed := t.changed(); changed != "" {
		add("changed by", "%s", changed)
	}
	return out
}

// changed returns which commit last changed the file, or how to find out; empty if that cannot be known.
func (t Trace) changed() string {
	switch f := t.File; {
	case f.Path == "" || t.Commit == nil || t.Commit.Artifact:
		return ""
	case f.Submodule != nil:
		return fmt.Sprintf("git log -1 %s -- %s says it, in a clone of that repository", f.Submodule.Commit, f.Submodule.Path)
	case f.LastChange == nil && f.Included != nil:
		i := f.Included
		return fmt.Sprintf("git log -1 %s -- %s says it, in a clone of that repository", Commit{Revision: i.Revision}.Hash(), i.Path)
	case f.LastChange == nil:
		return fmt.Sprintf("git log -1 %s -- %s says it, in a clone of the repository, where this command does, too", t.Commit.Hash(), f.Path)
	case f.LastChange.Hash() == t.Commit.Hash():
		return "that commit"
	default:
		c := f.LastChange
		return fmt.Sprintf("%s %q by %s, %s", c.Revision, c.Subject, orNobody(c.Author), c.Date)
	}
}

// Hash returns the hash in the revision.
func (c Commit) Hash() string { return c.Revision[strings.LastIndexByte(c.Revision, ':')+1:] }

func orNobody(author string) string {
	if author == "" {
		return "somebody unnamed"
	}
	return author
}

// unless returns the state and message of something that is not ready; empty if it is ready.
func unless(state situation.State, message string) string {
	if state == situation.Ready {
		return ""
	}
	if message == "" {
		return ", " + string(state)
	}
	return ", " + string(state) + ": " + message
}

// clusters writes the state of the template in each cluster: as a table, or, if that is wider than the
// screen, as a smaller one with the long texts below each line.
func (t Trace) clusters(out *strings.Builder, width int) {
	if len(t.Clusters) == 0 {
		return
	}
	table := t.table()
	if width > 0 && screen.Widest(table) > width {
		table = t.narrow(width)
	}
	out.WriteString("\n" + table)
	for _, c := range t.Clusters {
		if c.Message == "" {
			continue
		}
		for i, part := range screen.Wrap(c.Cluster+": "+excerpt.Line(c.Message), less(width, 4)) {
			fmt.Fprintf(out, "%*s%s\n", 2+2*min(i, 1), "", part)
		}
	}
}

func (t Trace) table() string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  CLUSTER\tREPLICAS\tWORK\tAPPLIED\tHEALTH\tIN THE MEMBER")
	for _, c := range t.Clusters {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\n", c.Cluster, c.replicas(), c.work(), c.Applied, orDash(c.Health), excerpt.Line(c.Member.text()))
	}
	_ = table.Flush() // into memory
	return out.String()
}

func (t Trace) narrow(width int) string {
	var short, out strings.Builder
	table := tabwriter.NewWriter(&short, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  CLUSTER\tREPLICAS\tAPPLIED\tHEALTH")
	for _, c := range t.Clusters {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", c.Cluster, c.replicas(), c.Applied, orDash(c.Health))
	}
	_ = table.Flush() // into memory
	lines := strings.SplitAfter(short.String(), "\n")
	out.WriteString(lines[0])
	for i, c := range t.Clusters {
		out.WriteString(lines[i+1])
		for _, more := range []line{{"work", c.work()}, {"member", excerpt.Line(c.Member.text())}} {
			for j, part := range screen.Wrap(more.text, less(width, 14)) {
				title := more.title
				if j > 0 {
					title = ""
				}
				fmt.Fprintf(&out, "      %-6s  %s\n", title, part)
			}
		}
	}
	return out.String()
}

// replicas and work are cells of the table.
func (d Delivery) replicas() string {
	if d.Replicas == 0 {
		return "-"
	}
	return fmt.Sprint(d.Replicas)
}

func (d Delivery) work() string {
	if d.Work == nil {
		return "-"
	}
	return d.Work.path()
}

// text returns a member's response in a few words.
func (m *Member) text() string {
	switch {
	case m == nil:
		return "not looked at"
	case m.Error != "":
		return m.Error
	}
	parts := []string{"uid " + m.UID}
	if m.Generation > 0 {
		parts = append(parts, fmt.Sprintf("generation %d", m.Generation))
	}
	if m.Ready != "" {
		parts = append(parts, m.Ready+" ready")
	}
	return strings.Join(append(parts, "since "+m.Created), ", ")
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
