package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectlexplain "k8s.io/kubectl/pkg/cmd/explain"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/cmd/flotilla/screen"
	"github.com/flotilla-io/flotilla/cmd/flotilla/tint"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/explain"
)

// explainTimeout is how long one request may take.
const explainTimeout = 30 * time.Second

// explainFlags are all flags of explain. Those of kubectl apply if the argument is a kind without
// a name.
type explainFlags struct {
	hub    *fleet.Flags
	scope  fleet.Scope
	output string
	files  []string
	all    bool

	recursive  bool
	apiVersion string
}

func newExplainCommand(hub *fleet.Flags) *cobra.Command {
	f := &explainFlags{hub: hub}
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME | KIND NAME | RESOURCE[.FIELD]",
		Short: "Say why something runs where it runs; or describe the fields of a kind",
		Long: `Say why something runs where it runs, or why it does not.

It names the policy that carries it and those that lost, what each cluster was
found to be and why, how replicas were divided, what overrides change where, what
the clusters say, and what to do about what is wrong. Nothing is changed.

With -f a manifest is explained that the control plane does not hold, or a new
version of one that it holds; policies and overrides in the files are taken for
those of the control plane.

With one plain word this is kubectl explain: it describes the fields of a kind, as
the control plane knows it, or as the member does that --cluster names.`,
		Example: `  flotilla explain deployment/web -n shop
  flotilla explain deployment web -n shop --cluster eu-3
  flotilla explain -f app.yaml -f policy.yaml
  flotilla explain propagationpolicy.spec.placement
  flotilla explain pod.spec.containers -C eu-3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !strings.Contains(args[0], "/") && len(f.files) == 0 {
				return f.fields(cmd, args)
			}
			return f.run(cmd, args)
		},
	}
	flags := cmd.Flags()
	f.scope.AddTo(cmd, hub, fleet.ScopeHub, fleet.ScopeMembers)
	flags.Lookup("clusters").Usage = "say only what is about these clusters; fields of a kind: ask this one"
	flags.Lookup("operation-scope").Usage = "fields of a kind: karmada or members; default is karmada, or members with --cluster"
	flags.StringVarP(&f.output, "output", "o", "", "text, json or yaml; for the fields of a kind plaintext or plaintext-openapiv2")
	flags.StringSliceVarP(&f.files, "filename", "f", nil, "file or folder of manifests to explain, or to explain with; - reads standard input")
	flags.BoolVar(&f.all, "all", false, "list every cluster on a line of its own")
	flags.BoolVarP(&f.recursive, "recursive", "R", false, "fields of a kind: with the fields of fields")
	flags.StringVar(&f.apiVersion, "api-version", "", "fields of a kind: in this version of its API")
	f.complete(cmd)
	return cmd
}

// complete offers kinds, names, clusters and formats.
func (f *explainFlags) complete(cmd *cobra.Command) {
	cmd.ValidArgsFunction = f.hub.CompleteObject()
	formats := cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", formats); err != nil {
		panic(err) // the flag was defined above
	}
}

// fields runs kubectl explain.
func (f *explainFlags) fields(cmd *cobra.Command, args []string) error {
	if slices.Contains([]string{"text", "json", "yaml"}, f.output) || f.all {
		return command.Usage(fmt.Errorf("a name is missing: say %s/NAME to have an object explained", args[0]))
	}
	if err := command.Output(f.output, "plaintext", "plaintext-openapiv2"); err != nil {
		return err
	}
	cluster, err := f.scope.One()
	if err != nil {
		return err
	}
	streams := genericiooptions.IOStreams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), ErrOut: cmd.ErrOrStderr()}
	flags := kubectlexplain.NewExplainFlags(streams)
	flags.APIVersion, flags.Recursive = f.apiVersion, f.recursive
	if f.output != "" {
		flags.OutputFormat = f.output
	}
	opts, err := flags.ToOptions(f.hub.Server(cluster, explainTimeout), cmd.Root().Name(), args)
	if err != nil {
		return fleet.DescribeOf(cluster, err)
	}
	if err := opts.Validate(); err != nil {
		return command.Usage(err)
	}
	err = fleet.Until(cmd.Context(), opts.Run)
	if described := fleet.DescribeOf(cluster, err); (fleet.IsUnknownKind(err) || meta.IsNoMatchError(err)) && !strings.Contains(args[0], ".") { // a name, perhaps
		return fmt.Errorf("%w; an object is explained by KIND/NAME, such as deployment/%s", described, args[0])
	}
	return fleet.DescribeOf(cluster, err)
}

// run explains one template.
func (f *explainFlags) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	kind, name, err := f.target(args)
	if err != nil {
		return command.Usage(err)
	}
	write, err := f.printer()
	if err != nil {
		return command.Usage(err)
	}
	files, err := readManifests(f.files, cmd.InOrStdin())
	if err != nil {
		return err
	}
	r, err := f.connect()
	if err != nil {
		return fleet.Describe(err)
	}
	in, err := r.read(ctx, kind, name, files)
	if err != nil {
		return fleet.Describe(err)
	}
	for _, name := range f.scope.Named() {
		if !knows(in, name) {
			return fleet.NoCluster(ctx, r.hub, name)
		}
	}
	e := explain.Explain(in)
	if in.Symptoms = f.examine(ctx, cmd.ErrOrStderr(), e, in.Template); len(in.Symptoms) > 0 {
		e = explain.Explain(in)
	}
	e = leftData(in.Template, in.Clusters, e)
	if len(f.scope.Named()) > 0 {
		e = e.Only(f.scope.Named())
	}
	if len(f.files) == 0 {
		e = behind(ctx, r.hub, in.Template, itself(in.Template, uncarried(ctx, r.hub, e)))
	}
	return write(cmd.OutOrStdout(), e)
}

// target returns the kind and name in the arguments; empty if only files are given.
func (f *explainFlags) target(args []string) (kind, name string, err error) {
	if f.scope.Given() {
		return "", "", errors.New("--operation-scope is for the fields of a kind: name no object")
	}
	if f.recursive || f.apiVersion != "" {
		return "", "", errors.New("--recursive and --api-version are for the fields of a kind: name no object")
	}
	switch len(args) {
	case 0:
		if len(f.files) == 0 {
			return "", "", errors.New("KIND/NAME is missing: flotilla explain deployment/web -n shop")
		}
		return "", "", nil
	case 1:
		kind, name, _ = strings.Cut(args[0], "/")
	case 2:
		kind, name = args[0], args[1]
	default:
		return "", "", fmt.Errorf("%q is too much: one object at a time is explained", args[2])
	}
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q is not KIND/NAME, such as deployment/web; the namespace goes to -n", strings.Join(args, " "))
	}
	return kind, name, nil
}

// printer returns a function that writes an explanation in the requested format.
func (f *explainFlags) printer() (func(io.Writer, explain.Explanation) error, error) {
	switch f.output {
	case "", "text":
		return func(out io.Writer, e explain.Explanation) error {
			_, err := io.WriteString(tint.For(out), e.Text(explain.TextOptions{All: f.all || len(f.scope.Named()) > 0, Width: screen.Width(out)}))
			return err
		}, nil
	case "json":
		return func(out io.Writer, e explain.Explanation) error {
			encoder := json.NewEncoder(out)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", "  ")
			return encoder.Encode(e)
		}, nil
	case "yaml":
		return func(out io.Writer, e explain.Explanation) error {
			data, err := yaml.Marshal(e)
			if err != nil {
				return err
			}
			_, err = out.Write(data)
			return err
		}, nil
	default:
		return nil, command.Output(f.output, "text", "json", "yaml")
	}
}

// connect returns a reader of the control plane.
func (f *explainFlags) connect() (*explainReader, error) {
	factory := f.hub.Server(fleet.Hub, explainTimeout)
	cfg, err := f.hub.Config()
	if err != nil {
		return nil, err
	}
	cfg.Timeout = explainTimeout
	mapper, err := factory.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	hub, err := listing.HubAt(cfg, mapper)
	if err != nil {
		return nil, err
	}
	return &explainReader{hub: hub, mapper: mapper, namespace: namespace, now: time.Now}, nil
}
