package planning

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/screen"
	"github.com/flotilla-io/flotilla/cmd/flotilla/tint"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/plan/comparison/report"
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
}

// formats of --output.
var formats = []string{"text", "json", "yaml", "markdown"}

func newPlanCommand(hub *fleet.Flags) *cobra.Command {
	f := &planFlags{hub: hub}
	cmd := &cobra.Command{
		Use:   "plan FOLDER | -f FILE... | REVISION..REVISION",
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

With --fleet and --base no control plane is needed: flotilla fleet export writes the file.
Values of Secrets are never shown; a digest that is another each time stands for one.`,
		Example: `  flotilla plan . --source gitrepository/fleet -n flux-system
  flotilla plan . --source gitrepository/fleet.flux-system --base origin/main
  flotilla plan main...change --source gitrepository/fleet.flux-system --kustomization flux-system/shop
  flotilla plan -f web.yaml -f policy.yaml -C eu-1
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
	f.scope.AddClustersTo(cmd, hub, "say only what is about these clusters")
	flags.StringVarP(&f.output, "output", "o", "text", strings.Join(formats, ", "))
	flags.BoolVar(&f.exitCode, "exit-code", false, "exit with 0 if nothing changes in any cluster, 1 if something does, and 2 on an error")
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
	if err := cmd.RegisterFlagCompletionFunc("output", output); err != nil {
		panic(err) // the flag was defined above
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
	case f.exitCode && !c.Empty():
		return command.Answer(command.Failed)
	}
	return nil
}

// check returns what is wrong with the call, and finds out what of it are revisions.
func (f *planFlags) check() error {
	if len(f.files) == 1 && f.head == "" && len(f.base) == 0 {
		if base, head, forked, is := span(f.files[0]); is {
			f.files, f.base, f.head, f.forked = nil, []string{base}, head, forked
		}
	}
	switch {
	case len(f.files) == 0 && f.head == "":
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
	in := comparison.Input{Base: comparison.Plan(change.before), Salt: make([]byte, 16), Brake: change.brake, Risks: change.risks}
	if _, err := rand.Read(in.Salt); err != nil {
		return comparison.Comparison{}, err
	}
	next := in.Base.Then(change.after)
	next.Kept = plan.Keep(change.before, in.Base.Plans)
	in.Head = comparison.Plan(next)
	c := comparison.Compare(in)
	if len(f.scope.Named()) == 0 {
		return c, nil
	}
	for _, name := range f.scope.Named() {
		if !slices.ContainsFunc(w.snapshot.Clusters, named(name)) {
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
