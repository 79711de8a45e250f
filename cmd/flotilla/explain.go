package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectlexplain "k8s.io/kubectl/pkg/cmd/explain"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/explain"
)

// explainTimeout is how long one request may take, and completionTimeout how
// long one that completes a word.
const (
	explainTimeout    = 30 * time.Second
	completionTimeout = "3s"
)

// explainFlags are all flags of explain; those of kubectl's count for a plain
// word.
type explainFlags struct {
	hub       hubFlags
	namespace string
	output    string
	files     []string
	clusters  []string
	all       bool

	recursive  bool
	apiVersion string
}

func newExplainCommand() *cobra.Command {
	f := &explainFlags{}
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

With one plain word this is kubectl explain: it describes the fields of a kind.`,
		Example: `  flotilla explain deployment/web -n shop
  flotilla explain deployment web -n shop --cluster eu-3
  flotilla explain -f app.yaml -f policy.yaml
  flotilla explain propagationpolicy.spec.placement`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !strings.Contains(args[0], "/") && len(f.files) == 0 {
				return f.fields(cmd, args)
			}
			return f.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), args)
		},
	}
	flags := cmd.Flags()
	f.hub.addFlags(flags)
	flags.StringVarP(&f.namespace, "namespace", "n", "", "namespace; default is that of the context")
	flags.StringVarP(&f.output, "output", "o", "", "text, json or yaml; for the fields of a kind plaintext or plaintext-openapiv2")
	flags.StringSliceVarP(&f.files, "filename", "f", nil, "file of manifests to explain, or to explain with; - reads standard input")
	flags.StringSliceVar(&f.clusters, "cluster", nil, "say only what is about these clusters")
	flags.BoolVar(&f.all, "all", false, "list every cluster on a line of its own")
	flags.BoolVarP(&f.recursive, "recursive", "R", false, "fields of a kind: with the fields of fields")
	flags.StringVar(&f.apiVersion, "api-version", "", "fields of a kind: in this version of its API")
	f.complete(cmd)
	return cmd
}

// complete offers kinds, names, clusters and formats.
func (f *explainFlags) complete(cmd *cobra.Command) {
	type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 1 || len(args) == 1 && strings.Contains(args[0], "/") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completion.SpecifiedResourceTypeAndNameNoRepeatCompletionFunc(f.factory(), nil)(cmd, args, word)
	}
	resources := func(kind string) completer {
		return func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
			return completion.CompGetResource(f.factory(), kind, word), cobra.ShellCompDirectiveNoFileComp
		}
	}
	for flag, fn := range map[string]completer{
		"cluster":   resources("clusters.cluster.karmada.io"),
		"namespace": resources("namespaces"),
		"output":    cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp),
	} {
		if err := cmd.RegisterFlagCompletionFunc(flag, fn); err != nil {
			panic(err) // the flag was defined above
		}
	}
}

// config leads to the control plane as kubectl would find it.
func (f *explainFlags) config() *genericclioptions.ConfigFlags {
	config := genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50)
	config.KubeConfig, config.Context, config.Namespace = &f.hub.kubeconfig, &f.hub.context, &f.namespace
	return config
}

func (f *explainFlags) factory() cmdutil.Factory {
	config := f.config()
	config.Timeout = ptr.To(completionTimeout)
	return cmdutil.NewFactory(config)
}

// fields is kubectl explain.
func (f *explainFlags) fields(cmd *cobra.Command, args []string) error {
	if slices.Contains([]string{"text", "json", "yaml"}, f.output) || len(f.clusters) > 0 || f.all {
		return command.Usage(fmt.Errorf("a name is missing: say %s/NAME to have an object explained", args[0]))
	}
	streams := genericiooptions.IOStreams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), ErrOut: cmd.ErrOrStderr()}
	flags := kubectlexplain.NewExplainFlags(streams)
	flags.APIVersion, flags.Recursive = f.apiVersion, f.recursive
	if f.output != "" {
		flags.OutputFormat = f.output
	}
	opts, err := flags.ToOptions(cmdutil.NewFactory(f.config()), cmd.Root().Name(), args)
	if err != nil {
		return f.describe(err)
	}
	if err := opts.Validate(); err != nil {
		return command.Usage(err)
	}
	return f.describe(opts.Run())
}

// run explains one template.
func (f *explainFlags) run(ctx context.Context, stdin io.Reader, out io.Writer, args []string) error {
	kind, name, err := f.target(args)
	if err != nil {
		return command.Usage(err)
	}
	write, err := f.printer()
	if err != nil {
		return command.Usage(err)
	}
	files, err := readManifests(f.files, stdin)
	if err != nil {
		return err
	}
	r, err := f.connect()
	if err != nil {
		return f.describe(err)
	}
	in, err := r.read(ctx, kind, name, files)
	if err != nil {
		return f.describe(err)
	}
	for _, name := range f.clusters {
		if !knows(in, name) {
			return fmt.Errorf("there is no cluster %s: flotilla kubectl get clusters lists them", name)
		}
	}
	e := explain.Explain(in)
	if len(f.clusters) > 0 {
		e = e.Only(f.clusters)
	}
	return write(out, e)
}

// target returns what the arguments name; empty where only files do.
func (f *explainFlags) target(args []string) (kind, name string, err error) {
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

// printer returns what writes an explanation in the format that was asked for.
func (f *explainFlags) printer() (func(io.Writer, explain.Explanation) error, error) {
	switch f.output {
	case "", "text":
		return func(out io.Writer, e explain.Explanation) error {
			_, err := io.WriteString(out, e.Text(explain.TextOptions{All: f.all || len(f.clusters) > 0}))
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
		return nil, fmt.Errorf("there is no output %q: it is text, json or yaml", f.output)
	}
}

// connect returns a reader of the control plane.
func (f *explainFlags) connect() (*explainReader, error) {
	cfg, err := loadConfig(f.hub.kubeconfig, f.hub.context)
	if err != nil {
		return nil, fmt.Errorf("find the control plane: %w; --kubeconfig names the file that leads to it", err)
	}
	cfg.Timeout = explainTimeout
	config := f.config()
	config.Timeout = ptr.To(explainTimeout.String())
	mapper, err := config.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	namespace, _, err := config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	hub, err := client.New(cfg, client.Options{Scheme: scheme.New(), Mapper: mapper})
	if err != nil {
		return nil, err
	}
	return &explainReader{hub: hub, mapper: mapper, namespace: namespace, now: time.Now}, nil
}
