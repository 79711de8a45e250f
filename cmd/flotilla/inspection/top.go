package inspection

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metrics "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/progress"
	"github.com/flotilla-io/flotilla/internal/command"
)

// top is one call of top pods or top nodes.
type top struct {
	fleet *fleet.Flags
	scope fleet.Scope

	name          string
	namespace     string
	allNamespaces bool
	selector      string
	fields        string
	protobuf      bool
	containers    bool
	capacity      bool
	swap          bool
	sheet         usageSheet
}

func newTopCommand(f *fleet.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show how much CPU and memory pods or nodes of members use",
		Long: `Show how much CPU and memory pods or nodes of members use.

All members are asked side by side, or those of --clusters. Each needs
metrics-server, or another that serves metrics.k8s.io. One that does not answer takes
nothing from the others; it is named, and the exit code is 1.`,
		Example: `  flotilla top nodes
  flotilla top pods -A -C eu-1,eu-2 --sum`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return command.Usage(fmt.Errorf("pods or nodes is missing: %s pods -A", cmd.CommandPath()))
		},
	}
	cmd.AddCommand(newTopPodsCommand(f), newTopNodesCommand(f))
	return cmd
}

func (t *top) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	t.scope.AddClustersTo(cmd, t.fleet, "member clusters to ask; default is all of them")
	cmdutil.AddLabelSelectorFlagVar(cmd, &t.selector)
	flags.StringVar(&t.sheet.sortBy, "sort-by", "", "cpu or memory, the most first; default is by name")
	flags.BoolVar(&t.swap, "show-swap", false, "swap memory, too")
	flags.BoolVar(&t.sheet.noHeaders, "no-headers", false, "without the line of headers")
	flags.BoolVar(&t.protobuf, "use-protocol-buffers", true, "ask for metrics in the shorter of two encodings")
	if err := cmd.RegisterFlagCompletionFunc("sort-by", cobra.FixedCompletions([]string{sortCPU, sortMemory}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was defined above
	}
}

// usageOf is the answer of one cluster.
type usageOf struct {
	rows   []usage
	absent []error
}

// check returns an error for wrong arguments, before any request.
func (t *top) check(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("%q is too much: %s", args[1], cmd.UseLine())
	}
	if len(args) == 1 {
		t.name = args[0]
	}
	if t.name != "" && (t.selector != "" || t.fields != "") {
		return errors.New("NAME and a selector are given: one of them says what is meant")
	}
	if _, err := labels.Parse(t.selector); err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	if _, err := fields.ParseSelector(t.fields); err != nil {
		return fmt.Errorf("--field-selector: %w", err)
	}
	return t.sheet.check()
}

func (t *top) run(cmd *cobra.Command, args []string, ask func(context.Context, string) (usageOf, error)) (err error) {
	if err := t.check(cmd, args); err != nil {
		return command.Usage(err)
	}
	if t.namespace, _, err = t.fleet.Factory().ToRawKubeConfigLoader().Namespace(); err != nil {
		return fleet.Completed(err)
	}
	ctx := cmd.Context()
	clusters, err := t.scope.Members(ctx, t.fleet)
	if err != nil {
		return err
	}
	waiting := progress.New(cmd.ErrOrStderr(), clusters)
	answers := fleet.Each(ctx, clusters, func(ctx context.Context, cluster string) (usageOf, error) {
		defer waiting.Done(cluster)
		return ask(ctx, cluster)
	})
	waiting.End()
	if err := ctx.Err(); err != nil {
		return err
	}
	summary := make([]fleet.Answer[found], 0, len(answers))
	faults := 0
	for _, a := range answers {
		t.sheet.rows = append(t.sheet.rows, a.Value.rows...)
		summary = append(summary, fleet.Answer[found]{Cluster: a.Cluster, Value: found{absent: a.Value.absent}, Err: a.Err})
		if a.Err != nil || len(a.Value.absent) > 0 {
			faults++
		}
	}
	if without := withoutMetrics(answers); len(without) > 1 && len(without) == len(answers) {
		return fmt.Errorf("clusters %s: %w", strings.Join(without, ", "), errNoMetrics)
	}
	if len(t.sheet.rows) == 0 && faults == 0 {
		t.nothing(cmd, len(clusters))
	}
	if err := t.sheet.print(cmd.OutOrStdout()); err != nil {
		return err
	}
	return report(t.fleet, &t.scope, cmd.ErrOrStderr(), summary)
}

// errNoMetrics means that a cluster does not serve metrics.
var errNoMetrics = fmt.Errorf("%s is not served: is metrics-server installed?", metricsv1beta1.SchemeGroupVersion)

// withoutMetrics returns the clusters that do not serve metrics.
func withoutMetrics(answers []fleet.Answer[usageOf]) []string {
	var out []string
	for _, a := range answers {
		if errors.Is(a.Err, errNoMetrics) {
			out = append(out, a.Cluster)
		}
	}
	return out
}

func (t *top) nothing(cmd *cobra.Command, clusters int) {
	namespace := t.namespace
	if t.allNamespaces {
		namespace = ""
	}
	_, _ = fmt.Fprintln(cmd.ErrOrStderr(), none(clusters, namespace))
}

// connect returns clients of a cluster that serves metrics.
func (t *top) connect(ctx context.Context, cluster string) (metrics.MetricsV1beta1Interface, kubernetes.Interface, error) {
	cfg, err := t.fleet.Server(cluster, fleet.Timeout).ToRESTConfig()
	if err != nil {
		return nil, nil, err
	}
	known, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, nil, err
	}
	version := metricsv1beta1.SchemeGroupVersion.String()
	if _, err := known.ServerResourcesForGroupVersion(version); err != nil {
		if apierrors.IsNotFound(err) {
			err = errNoMetrics
		}
		return nil, nil, err
	}
	core, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, nil, err
	}
	usageConfig := rest.CopyConfig(cfg)
	if t.protobuf {
		usageConfig.ContentType = "application/vnd.kubernetes.protobuf"
		usageConfig.AcceptContentTypes = usageConfig.ContentType + ",application/json"
	}
	client, err := metrics.NewForConfig(usageConfig)
	return client, core, err
}
