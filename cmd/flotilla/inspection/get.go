package inspection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd/get"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/progress"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// getter is one call of get.
type getter struct {
	*get.GetOptions
	fleet *fleet.Flags
	scope fleet.Scope
	args  []string
}

func newGetCommand(f *fleet.Flags) *cobra.Command {
	g := &getter{GetOptions: get.NewGetOptions("flotilla", genericiooptions.IOStreams{}), fleet: f}
	cmd := &cobra.Command{
		Use:   "get KIND [NAME... | -l LABEL] | KIND/NAME... | -f FILE",
		Short: "List objects of the control plane and of the members",
		Long: `List objects of the control plane and of the members.

It asks the control plane, unless --operation-scope or --clusters says otherwise.
Members are asked side by side: CLUSTER says where each object is, ADOPTION whether
the fleet has put it there. One that does not answer takes nothing from the others;
it is named, and the exit code is 1. An object counts as there when one server has
it.`,
		Example: `  flotilla get clusters
  flotilla get deployments -n shop --operation-scope all
  flotilla get pods -A -C eu-1,eu-2 -o wide
  flotilla get deployment/web -n shop -s members -w`,
		RunE: func(cmd *cobra.Command, args []string) error {
			g.IOStreams, g.args = streams(cmd), followed(args)
			return g.run(cmd)
		},
	}
	cmd.ValidArgsFunction = completeObjects(f, &g.scope)
	g.scope.AddTo(cmd, f, fleet.ScopeHub, fleet.ScopeMembers, fleet.ScopeAll)
	g.addFlags(cmd)
	return cmd
}

// followed returns arguments in which a kind of sources that is named as by reconcile, such as "source git", is one that servers know.
func followed(args []string) []string {
	if len(args) < 2 || args[0] != "source" && args[0] != "sources" {
		return args
	}
	for _, kind := range origins.Kinds() {
		if kind.Word == args[1] {
			return append([]string{strings.ToLower(kind.Plural) + "." + sourcev1.GroupVersion.Group}, args[2:]...)
		}
	}
	return args
}

func (g *getter) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	g.PrintFlags.AddFlags(cmd)
	flags.StringVar(&g.Raw, "raw", "", "path to ask the control plane for, as it is")
	flags.BoolVarP(&g.Watch, "watch", "w", false, "go on with what changes")
	flags.BoolVar(&g.WatchOnly, "watch-only", false, "show what changes, without what is there")
	flags.BoolVar(&g.OutputWatchEvents, "output-watch-events", false, "with --watch or --watch-only: show what happened to an object, too")
	flags.BoolVar(&g.IgnoreNotFound, "ignore-not-found", false, "it is no fault when an object is not there")
	flags.StringVar(&g.FieldSelector, "field-selector", "", "fields that objects must have, such as status.phase=Running; = == and != are known")
	flags.BoolVarP(&g.AllNamespaces, "all-namespaces", "A", false, "in all namespaces")
	flags.BoolVar(&g.ServerPrint, "server-print", true, "let the server say what the columns are")
	cmdutil.AddFilenameOptionFlags(cmd, &g.FilenameOptions, "that names the objects")
	cmdutil.AddChunkSizeFlag(cmd, &g.ChunkSize)
	cmdutil.AddLabelSelectorFlagVar(cmd, &g.LabelSelector)
	cmdutil.AddSubresourceFlags(cmd, &g.Subresource, "get this subresource of the objects")
}

func (g *getter) run(cmd *cobra.Command) error {
	if err := g.check(); err != nil {
		return command.Usage(err)
	}
	if err := g.Complete(g.fleet.Factory(), cmd, g.args); err != nil {
		return fleet.Completed(err)
	}
	if err := g.Validate(); err != nil {
		return command.Usage(err)
	}
	switch {
	case g.Watch || g.WatchOnly:
		return g.watch(cmd.Context())
	case g.scope.HubOnly():
		heard := &noneHeard{Writer: g.ErrOut}
		g.ErrOut = heard
		err := described(g.fleet, fleet.Hub, fleet.Until(cmd.Context(), func() error { return g.Run(g.fleet.Factory(), g.args) }))
		if of := runsInMembers(g.args); err == nil && heard.none && of != "" {
			_, _ = fmt.Fprintf(heard.Writer, "The control plane runs none itself: flotilla get %s -s %s lists those of the clusters.\n", of, fleet.ScopeMembers)
		}
		if err == nil && heard.none && g.allClusters() {
			_, _ = fmt.Fprintln(heard.Writer, noCluster)
		}
		if err == nil && g.allClusters() {
			g.awaited(cmd.Context())
		}
		return fleet.MissingCluster(cmd.Context(), g.fleet, err)
	default:
		return g.gather(cmd.Context())
	}
}

// check returns errors for which kubectl prints more than a line, or which it does not find.
func (g *getter) check() error {
	if g.Raw != "" {
		if !g.scope.HubOnly() {
			return errors.New("--raw asks the control plane alone: leave out --operation-scope and --clusters")
		}
		return nil
	}
	if len(g.args) == 0 && cmdutil.IsFilenameSliceEmpty(g.Filenames, g.Kustomize) {
		return errors.New("KIND is missing: flotilla get deployments -n shop; flotilla api-resources lists the kinds")
	}
	if slices.Contains(g.Filenames, "-") && !g.scope.HubOnly() {
		return errors.New("-f - can be read for one server alone: name a file")
	}
	_, err := g.PrintFlags.ToPrinter()
	return fleet.Completed(err)
}

// gather lists the objects of every server and prints them together.
func (g *getter) gather(ctx context.Context) error {
	servers, err := g.scope.Servers(ctx, g.fleet)
	if err != nil {
		return err
	}
	seen := progress.New(g.ErrOut, servers)
	answers := fleet.Each(ctx, servers, func(_ context.Context, server string) (found, error) {
		defer seen.Done(server)
		return g.ask(server)
	})
	seen.End()
	if err := ctx.Err(); err != nil {
		return err
	}
	var printed error
	if g.IsHumanReadablePrinter {
		printed = g.printTables(answers)
	} else {
		printed = g.printObjects(answers)
	}
	if printed != nil {
		return printed
	}
	return report(g.fleet, &g.scope, g.ErrOut, answers)
}

// found is the result of one server.
type found struct {
	infos []*resource.Info
	// single is true if one object was requested by name.
	single bool
	// absent has the errors about objects that the server does not have, or kinds that
	// it does not serve.
	absent []error
}

// ask lists the objects of one server.
func (g *getter) ask(server string) (found, error) {
	var f found
	r := g.builder(server, g.chunk()).ContinueOnError().Flatten().Do()
	if g.IgnoreNotFound {
		r.IgnoreErrors(isAbsent)
	}
	err := r.Err()
	if err == nil {
		f.infos, err = r.IntoSingleItemImplied(&f.single).Infos()
	}
	var faults []error
	for _, e := range flatten(err) {
		if isAbsent(e) {
			f.absent = append(f.absent, e)
		} else {
			faults = append(faults, e)
		}
	}
	return f, errors.Join(faults...)
}

// chunk returns how many objects are requested at a time; 0 means all, which sorting needs.
func (g *getter) chunk() int64 {
	if g.SortBy != "" {
		return 0
	}
	return g.ChunkSize
}

func (g *getter) builder(server string, chunk int64) *resource.Builder {
	return g.build(g.fleet.Server(server, fleet.Timeout).NewBuilder(), chunk)
}

func (g *getter) build(b *resource.Builder, chunk int64) *resource.Builder {
	return b.Unstructured().
		NamespaceParam(g.Namespace).DefaultNamespace().AllNamespaces(g.AllNamespaces).
		FilenameParam(g.ExplicitNamespace, &g.FilenameOptions).
		LabelSelectorParam(g.LabelSelector).
		FieldSelectorParam(g.FieldSelector).
		Subresource(g.Subresource).
		RequestChunksOf(chunk).
		ResourceTypeOrNameArgs(true, slices.Clone(g.args)...). // it changes its arguments
		Latest().
		TransformRequests(g.wantTable)
}

// wantTable requests tables from a server if the output is for people.
func (g *getter) wantTable(req *rest.Request) {
	if !g.ServerPrint || !g.IsHumanReadablePrinter {
		return
	}
	const table = "application/json;as=Table;v=v1;g=" + metav1.GroupName
	req.SetHeader("Accept", strings.Join([]string{table, "application/json"}, ","))
	if g.SortBy != "" {
		req.Param("includeObject", string(metav1.IncludeObject))
	}
}

// nothing prints that servers have no objects.
func (g *getter) nothing(servers int, namespaced bool) {
	namespace := ""
	if namespaced && !g.AllNamespaces {
		namespace = g.Namespace
	}
	_, _ = fmt.Fprintln(g.ErrOut, none(servers, namespace))
}
