package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/customization"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/lint"
	"github.com/flotilla-io/flotilla/cmd/flotilla/tint"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
)

// interpretFlags are the flags of interpret.
type interpretFlags struct {
	hub       *fleet.Flags
	files     []string
	names     []string // of customizations on the control plane
	operation string
	namespace string
	output    string
	objects   objectFlags

	check, edit, diff, showDoc bool
}

// objectFlags are the flags for the input of an operation.
type objectFlags struct {
	desired, observed, status []string
	replicas                  int32
	hasReplicas               bool
}

func newInterpretCommand(hub *fleet.Flags) *cobra.Command {
	f := &interpretFlags{hub: hub}
	cmd := &cobra.Command{
		Use:   "interpret [-f FILE...| NAME...] (--operation OPERATION | --check | --edit | --diff)",
		Short: "Run, check and edit what the fleet knows about a kind of resource",
		Long: `Try a ResourceInterpreterCustomization before it is used: run one of its operations
on objects in files, check its scripts, edit them, or see what it would change on
the control plane. Nothing is changed but by --edit.

Customizations come from files (-f), or by NAME from the control plane. With
neither, what is built in answers; with --kubeconfig or --karmada-context, first
what the control plane has been taught. Each answer says who gave it: a
customization, the bundled rules for kinds of others, or the native ones. Webhooks
are not asked.

Operations: InterpretReplica, InterpretComponent, ReviseReplica,
InterpretDependency, Retain, InterpretStatus, InterpretHealth, AggregateStatus.

Files are YAML or JSON with any number of documents; - is the standard input.`,
		Example: `  # do the scripts compile, and run on this object?
  flotilla interpret -f customization.yaml --check --observed-file observed.yaml

  # how many replicas does it ask for, and what does a cluster get of them?
  flotilla interpret -f customization.yaml --operation interpretReplica --desired-file app.yaml
  flotilla interpret -f customization.yaml --operation reviseReplica --desired-file app.yaml --desired-replica 2

  # what stays as the member has it?
  flotilla interpret -f customization.yaml --operation retain --desired-file app.yaml --observed-file observed.yaml

  # what is reported of a member, is it healthy, and what do all of them make?
  flotilla interpret -f customization.yaml --operation interpretStatus --observed-file observed.yaml
  flotilla interpret -f customization.yaml --operation interpretHealth --observed-file observed.yaml
  flotilla interpret -f customization.yaml --operation aggregateStatus --desired-file app.yaml --status-file items.yaml

  # what does it need beside it? (what is built in knows Deployments)
  flotilla interpret --operation interpretDependency --desired-file deployment.yaml

  # change the scripts of a file, or those on the control plane
  flotilla interpret -f customization.yaml --edit --show-doc
  flotilla interpret boats --edit

  # what would it change on the control plane?
  flotilla interpret -f customization.yaml --diff`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.names = args
			f.objects.hasReplicas = cmd.Flags().Changed("desired-replica")
			return f.run(cmd)
		},
	}
	f.addFlags(cmd)
	return cmd
}

func (f *interpretFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVarP(&f.files, "filename", "f", nil, "file or folder with customizations; - reads standard input")
	flags.StringVar(&f.operation, "operation", "", "operation to run, in any case")
	flags.BoolVar(&f.check, "check", false, "check the scripts, and run them on the objects, if there are any")
	flags.BoolVar(&f.edit, "edit", false, "edit the scripts with $KUBE_EDITOR or $EDITOR; they are written back once they compile")
	flags.BoolVar(&f.diff, "diff", false, "show what the customizations would change for the objects on the control plane")
	flags.BoolVar(&f.showDoc, "show-doc", false, "with --edit: say what each function gets and returns")
	flags.StringSliceVar(&f.objects.desired, "desired-file", nil, "file with the object as the control plane has it")
	flags.StringSliceVar(&f.objects.observed, "observed-file", nil, "file with the object as the member has it")
	flags.StringSliceVar(&f.objects.status, "status-file", nil, "file with what clusters report: a list, items one by one, or a binding")
	flags.Int32Var(&f.objects.replicas, "desired-replica", 0, "number of replicas for ReviseReplica")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "namespace for objects in files that name none")
	flags.StringVarP(&f.output, "output", "o", "text", "text, yaml or json; the last two give the bare answer")
	for flag, words := range map[string][]string{"operation": customization.Names(), "output": {"text", "yaml", "json"}} {
		if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flag was defined above
		}
	}
	cmd.ValidArgsFunction = f.hub.CompleteNames("resourceinterpretercustomizations.config.karmada.io")
}

// wrong returns an error if the flags do not fit together.
func (f *interpretFlags) wrong() error {
	modes := 0
	for _, set := range []bool{f.operation != "", f.check, f.edit, f.diff} {
		if set {
			modes++
		}
	}
	switch {
	case modes != 1:
		return errors.New("say one of --operation, --check, --edit and --diff; flotilla interpret --help has examples")
	case len(f.files) > 0 && len(f.names) > 0:
		return fmt.Errorf("%q is too much: customizations come from files or by name", f.names[0])
	case len(f.files)+len(f.names) == 0 && (f.check || f.edit || f.diff):
		return errors.New("no customization: name a file with -f, or one of the control plane's")
	}
	f.output = cmp.Or(f.output, "text")
	return command.Output(f.output, "text", "yaml", "json")
}

func (f *interpretFlags) run(cmd *cobra.Command) error {
	if err := f.wrong(); err != nil {
		return command.Usage(err)
	}
	var operation customization.Operation
	if f.operation != "" {
		var err error
		if operation, err = customization.Find(f.operation); err != nil {
			return command.Usage(err)
		}
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), interpretTimeout)
	defer cancel()
	in := &once{in: cmd.InOrStdin()}
	sources, err := f.sources(ctx, in)
	if err != nil {
		return err
	}
	if f.edit {
		return f.editOne(cmd, sources)
	}
	files, err := f.objects.read(in, f.namespace)
	if err != nil {
		return err
	}
	switch {
	case f.check:
		return f.runCheck(cmd, sources, files)
	case f.diff:
		return f.runDiff(ctx, cmd, sources)
	default:
		return f.runOperation(cmd, operation, sources, files)
	}
}

// interpretTimeout is how long all requests to the control plane may take together.
const interpretTimeout = 5 * time.Minute

// machine returns a machine that runs scripts as the control plane does, but with a long time
// limit, so that steps and memory decide: the result is the same on a busy machine.
func machine() *lua.Machine {
	return lua.New(lua.Options{Now: time.Now, Time: time.Minute})
}

// sources reads the customizations that the call names.
func (f *interpretFlags) sources(ctx context.Context, in io.Reader) ([]customization.Source, error) {
	if len(f.files) > 0 {
		files, err := readFiles(f.files, in)
		if err != nil {
			return nil, err
		}
		sources, err := customization.Read(files)
		if err == nil && len(sources) == 0 {
			err = command.Usage(fmt.Errorf("there is no %s in the files", customization.Kind.Kind))
		}
		return sources, err
	}
	if len(f.names) == 0 && f.hub.Kubeconfig == "" && f.hub.Context == "" {
		return nil, nil
	}
	hub, err := f.hub.Client()
	if err != nil {
		return nil, fleet.Describe(err)
	}
	if len(f.names) == 0 {
		all, err := customizationsOf(ctx, hub)
		return customization.Stored(all), fleet.Describe(err)
	}
	var out []*configv1alpha1.ResourceInterpreterCustomization
	for _, name := range f.names {
		c := &configv1alpha1.ResourceInterpreterCustomization{}
		if err := hub.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
			return nil, fleet.Describe(err)
		}
		out = append(out, c)
	}
	return customization.Stored(out), nil
}

// customizationsOf lists all customizations of the control plane.
func customizationsOf(ctx context.Context, hub client.Reader) ([]*configv1alpha1.ResourceInterpreterCustomization, error) {
	var out []*configv1alpha1.ResourceInterpreterCustomization
	err := pages(ctx, hub, &configv1alpha1.ResourceInterpreterCustomizationList{}, func(list *configv1alpha1.ResourceInterpreterCustomizationList) {
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	})
	return out, err
}

// once is standard input, which can be read only once: a second reader would get an empty file.
type once struct {
	in   io.Reader
	used bool
}

func (o *once) Read(p []byte) (int, error) { return o.in.Read(p) }

// readFiles reads files and folders. A missing one is a usage error.
func readFiles(names []string, in io.Reader) ([]lint.File, error) {
	for _, name := range names {
		if o, ok := in.(*once); ok && name == "-" {
			if o.used {
				return nil, command.Usage(errors.New("the standard input is named twice: - can stand for one file"))
			}
			o.used = true
		}
	}
	files, err := lint.Files(names, in)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, command.Usage(err)
	}
	return files, err
}

// read reads the input in the flags.
func (f *objectFlags) read(in io.Reader, namespace string) (customization.Files, error) {
	var out customization.Files
	if f.hasReplicas {
		if f.replicas < 0 {
			return out, command.Usage(fmt.Errorf("--desired-replica %d is less than none", f.replicas))
		}
		out.Replicas = &f.replicas
	}
	desired, err := readFiles(f.desired, in)
	if err != nil {
		return out, err
	}
	observed, err := readFiles(f.observed, in)
	if err != nil {
		return out, err
	}
	items, err := readFiles(f.status, in)
	if err != nil {
		return out, err
	}
	if out.Desired, err = customization.Objects(desired, namespace); err != nil {
		return out, err
	}
	if out.Observed, err = customization.Objects(observed, namespace); err != nil {
		return out, err
	}
	if len(f.status) > 0 {
		out.Items, err = customization.Items(items)
	}
	return out, err
}

// runOperation runs one operation on all objects and writes the answers.
func (f *interpretFlags) runOperation(cmd *cobra.Command, o customization.Operation, sources []customization.Source, files customization.Files) error {
	inputs, err := files.About(sources).Inputs(o)
	if err != nil {
		return command.Usage(err)
	}
	stack := customization.NewStack(machine(), customization.All(sources))
	trial := customization.Trial{Stack: stack, Sources: sources}
	printer := customization.Printer{Out: cmd.OutOrStdout(), Format: customization.Format(f.output), Color: tint.Wanted(cmd.OutOrStdout())}
	failed, last := 0, error(nil)
	for _, in := range inputs {
		r := trial.Run(o, in)
		if r.Err != nil {
			failed, last = failed+1, r.Err
			if len(inputs) == 1 {
				break // it is printed once
			}
		}
		if err := printer.Result(r); err != nil {
			return err
		}
	}
	if failed > 0 && len(inputs) > 1 {
		return fmt.Errorf("%s failed for %d of %d objects, the last: %w", o.Name, failed, len(inputs), last)
	}
	return last
}

// runCheck checks all customizations and writes what it finds.
func (f *interpretFlags) runCheck(cmd *cobra.Command, sources []customization.Source, files customization.Files) error {
	findings, err := findingsOf(cmd.Context(), sources)
	if err != nil {
		return err
	}
	checks := customization.Checks(machine(), sources, findings, files)
	if err := f.writeChecks(cmd.OutOrStdout(), checks); err != nil {
		return err
	}
	failed := 0
	for _, c := range checks {
		if c.Failed() {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %s failed the check", failed, count(len(checks), "customization"))
	}
	return nil
}

func (f *interpretFlags) writeChecks(out io.Writer, checks []customization.Check) error {
	var data []byte
	var err error
	switch f.output {
	case "json":
		data, err = json.MarshalIndent(checks, "", "  ")
		data = append(data, '\n')
	case "yaml":
		data, err = yaml.Marshal(checks)
	default:
		for i, c := range checks {
			if i > 0 {
				data = append(data, '\n')
			}
			data = append(data, c.Text()...)
		}
	}
	if err == nil {
		_, err = out.Write(data)
	}
	return err
}

// findingsOf lints the files of the sources.
func findingsOf(ctx context.Context, sources []customization.Source) ([]lint.Finding, error) {
	var files []lint.File
	seen := map[string]bool{}
	for _, s := range sources {
		if s.File.Name != "" && !seen[s.File.Name] {
			seen[s.File.Name] = true
			files = append(files, s.File)
		}
	}
	linter, err := lint.New()
	if err != nil {
		return nil, err
	}
	report, err := linter.Lint(ctx, files, lint.Options{Now: time.Now()})
	return report.Findings, err
}
