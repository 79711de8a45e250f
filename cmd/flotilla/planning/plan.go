package planning

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/screen"
	"github.com/flotilla-io/flotilla/cmd/flotilla/tint"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/plan/comparison/report"
	"github.com/flotilla-io/flotilla/policies/whatif"
)

// planFlags are the flags of plan.
type planFlags struct {
	hub           *fleet.Flags
	files, base   []string
	head          string
	forked        bool
	fleetFile     string
	source        string
	kustomization string
	scope         fleet.Scope
	output        string
	exitCode, all bool
	// whatIf are the words of events, and supposed is what they mean.
	whatIf   []string
	supposed []whatif.Event
}

// formats of --output.
var formats = []string{"text", "json", "yaml", "markdown"}

func newPlanCommand(hub *fleet.Flags) *cobra.Command {
	f := &planFlags{hub: hub}
	cmd := &cobra.Command{
		Use:   "plan FOLDER | -f FILE... | REVISION..REVISION | --what-if EVENT",
		Short: "Say what a change of files does to each cluster, before it is applied",
		Long: `Say what a change of files does to each cluster, before it is applied or merged: which
clusters gain and lose what and why, how replicas move, the exact difference of what each cluster
will hold, with equal differences once, which pods restart, and what is risky. It asks the
functions by which the control plane decides, for templates, policies and overrides alike, and
changes nothing.

With --source the folder is the root of that source's repository: all Kustomizations of the source
are built, each by its own spec, and those among the files are followed. What moves from one to
another is moved, what none has any more is deleted, and what the control plane would refuse is
said. --kustomization shows the part of one of them. Without either, a folder is built as a
Kustomization with that path would be.

The files are compared with what the control plane holds; objects of files are sent to it as a dry
run, so that defaults make no difference. With --base they are compared with other files, or with
a revision of the Git repository that the folder is in, such as the branch that the change is to be
merged into. --head takes a revision in place of the files: neither touches the worktree.

With --what-if the fleet as it is, with the files before the change, is compared with the fleet as
it would be once clusters are lost, drained, removed, changed or added, with the files after it.
Without files, what the control plane holds is compared with what it would hold. What is seen is
the end: failover has waited for as long as anything tolerates, and old copies are gone. EVENT is
CLUSTER:down (it does not answer), :drain, :cordon, :remove, :label=KEY=VALUE, :label=KEY-,
:taint=KEY=VALUE:EFFECT, :capacity=50% or :capacity=cpu=100,memory=200Gi, or add:FILE, the
manifest of a Cluster that joins.

With --fleet and --base no control plane is needed: flotilla fleet export writes the file.
Values of Secrets are never shown; a digest that is another each time stands for one.`,
		Example: `  flotilla plan . --source gitrepository/fleet -n flux-system
  flotilla plan . --source gitrepository/fleet.flux-system --base origin/main
  flotilla plan main...change --source gitrepository/fleet.flux-system --kustomization flux-system/shop
  flotilla plan -f web.yaml -f policy.yaml -C eu-1
  flotilla plan --what-if eu-3:down
  flotilla plan . --source fleet.flux-system --what-if eu-3:capacity=50%,add:us-4.yaml
  flotilla plan . --base origin/main --fleet fleet.yaml --source fleet.flux-system -o markdown --exit-code`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.files = append(f.files, args...)
			return f.run(cmd)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVarP(&f.files, "filename", "f", nil, "file or folder of the change; - reads standard input")
	flags.StringSliceVar(&f.base, "base", nil, "file, folder or Git revision to compare with, instead of what the control plane holds")
	flags.StringVar(&f.head, "head", "", "Git revision of the change, instead of the files of FOLDER; --base is a revision then, too")
	flags.StringVar(&f.fleetFile, "fleet", "", "file of flotilla fleet export, instead of the control plane; needs --base")
	flags.StringVar(&f.source, "source", "", "[KIND/]NAME[.NAMESPACE] of the source whose repository FOLDER is; without it and --kustomization nothing that the control plane holds is deleted, unless it is in --base")
	flags.StringVar(&f.kustomization, "kustomization", "", "NAMESPACE/NAME of a Kustomization: show what it applies of its source's repository, FOLDER")
	flags.StringArrayVar(&f.whatIf, "what-if", nil, "what happens to clusters besides, such as eu-3:down or add:us-4.yaml; several are separated by commas")
	f.scope.AddClustersTo(cmd, hub, "say only what is about these clusters")
	flags.StringVarP(&f.output, "output", "o", "text", strings.Join(formats, ", "))
	flags.BoolVar(&f.exitCode, "exit-code", false, "exit with 0 if nothing changes in any cluster, 1 if something does, and 2 on an error, such as a change that a Kustomization will not apply")
	flags.BoolVar(&f.all, "all", false, "name every cluster, instead of the first of many")
	f.complete(cmd)
	return cmd
}

// complete offers files and formats.
func (f *planFlags) complete(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	output := cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)
	for name, offer := range map[string]cobra.CompletionFunc{"output": output, "what-if": f.completeEvent} {
		if err := cmd.RegisterFlagCompletionFunc(name, offer); err != nil {
			panic(err) // the flag was defined above
		}
	}
}

// unknown is an error by which it is not known whether anything changes.
type unknown struct{ error }

// ExitStatus tells it from a change.
func (unknown) ExitStatus() int { return command.Wrong }

// Unwrap returns what went wrong.
func (u unknown) Unwrap() error { return u.error }

// run plans, and writes what changes.
func (f *planFlags) run(cmd *cobra.Command) error {
	c, err := f.compare(cmd)
	if err == nil {
		err = f.write(cmd.OutOrStdout(), c)
	}
	switch {
	case err != nil && f.exitCode:
		return unknown{err}
	case err != nil:
		return err
	case !f.exitCode:
		return nil
	}
	if _, refused := c.Refused(); refused { // it is said why
		return command.Answer(command.Wrong)
	}
	if !c.Empty() {
		return command.Answer(command.Failed)
	}
	return nil
}

// filed reports whether there are files of a change.
func (f *planFlags) filed() bool { return len(f.files) > 0 || f.head != "" }

// check returns what is wrong with the call, and finds out what of it are revisions and events.
func (f *planFlags) check() error {
	var err error
	if f.supposed, err = whatif.Parse(f.whatIf); err != nil {
		return command.Usage(fmt.Errorf("--what-if %w", err))
	}
	if len(f.files) == 1 && f.head == "" && len(f.base) == 0 {
		if base, head, forked, is := span(f.files[0]); is {
			f.files, f.base, f.head, f.forked = nil, []string{base}, head, forked
		}
	}
	switch {
	case !f.filed() && len(f.supposed) > 0 && len(f.base) == 0 && f.source == "" && f.kustomization == "":
		return command.Output(f.output, formats...)
	case !f.filed():
		return command.Usage(errors.New("the files of the change are missing: flotilla plan FOLDER"))
	case f.head != "" && (len(f.base) > 1 || len(f.files) > 1):
		return command.Usage(errors.New("with --head, name one revision for --base, and at most one folder"))
	case f.fleetFile != "" && len(f.base) == 0:
		return command.Usage(errors.New("--fleet needs --base, the files before the change: the control plane fills in defaults, which files do not have"))
	case f.kustomization != "" && strings.Count(f.kustomization, "/") != 1:
		return command.Usage(fmt.Errorf("--kustomization %q is not NAMESPACE/NAME", f.kustomization))
	case slices.Contains(f.files, "-") && slices.Contains(f.base, "-"):
		return command.Usage(errors.New("standard input can be read only once: name a file for -f or --base"))
	}
	return command.Output(f.output, formats...)
}

func (f *planFlags) compare(cmd *cobra.Command) (comparison.Comparison, error) {
	if err := f.check(); err != nil {
		return comparison.Comparison{}, err
	}
	ctx := cmd.Context()
	w, err := f.world(ctx, cmd.InOrStdin())
	if err != nil {
		return comparison.Comparison{}, fleet.Describe(err)
	}
	change, err := f.change(ctx, w)
	if err != nil {
		return comparison.Comparison{}, fleet.Describe(err)
	}
	for _, note := range slices.Concat(w.notes(), change.still) {
		if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", note); err != nil {
			return comparison.Comparison{}, err
		}
	}
	change.after = w.supposed.After(change.after)
	in := comparison.Input{Base: comparison.Plan(change.before), Salt: make([]byte, 16), Brake: change.brake, Risks: change.risks}
	if _, err := rand.Read(in.Salt); err != nil {
		return comparison.Comparison{}, err
	}
	next := in.Base.Then(change.after)
	next.Kept = plan.Keep(change.before, in.Base.Plans)
	in.Head = comparison.Plan(next)
	w.supposed.Describe(&in)
	return f.narrowed(comparison.Compare(in), slices.Concat(change.before.Clusters, change.after.Clusters))
}

// narrowed returns the part of a comparison that is about the clusters of the call.
func (f *planFlags) narrowed(c comparison.Comparison, clusters []*clusterv1alpha1.Cluster) (comparison.Comparison, error) {
	if len(f.scope.Named()) == 0 {
		return c, nil
	}
	for _, name := range f.scope.Named() {
		if !slices.ContainsFunc(clusters, func(c *clusterv1alpha1.Cluster) bool { return c.Name == name }) {
			return c, command.Usage(fmt.Errorf("there is no cluster %s in the fleet", name))
		}
	}
	return c.Only(f.scope.Named()), nil
}

// write writes a Comparison in the requested format.
func (f *planFlags) write(out io.Writer, c comparison.Comparison) error {
	var content []byte
	var err error
	switch f.output {
	case "json":
		content, err = report.JSON(c)
	case "yaml":
		content, err = report.YAML(c)
	case "markdown":
		content = []byte(report.Markdown(c, report.MarkdownOptions{Whole: "flotilla plan"}))
	default:
		_, err = io.WriteString(tint.Difference(out), report.Text(c, report.TextOptions{All: f.all, Width: screen.Width(out)}))
		return err
	}
	if err == nil {
		_, err = out.Write(content)
	}
	return err
}
