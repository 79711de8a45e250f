package change

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/cmd/flotilla/change/promotion"
	"github.com/flotilla-io/flotilla/cmd/flotilla/customization"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/contexts"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
)

// promoteFlags are the flags of promote.
type promoteFlags struct {
	fleet                          *fleet.Flags
	cluster, kubeconfig, context   string
	policyName, output, dryRun     string
	autoPolicy, dependencies, undo bool
	allowChanges                   bool
	wait                           time.Duration
	// host is the server in --cluster-kubeconfig; empty without that flag.
	host string
}

func newPromote(f *fleet.Flags) *cobra.Command {
	p := &promoteFlags{fleet: f}
	cmd := &cobra.Command{
		Use:   "promote KIND NAME -C CLUSTER",
		Short: "Take what runs in a cluster over into the fleet, without a restart",
		Long: `Take what runs in a cluster over into the fleet, without a restart, or give it back.

The object is read in the cluster, through the control plane or by
--cluster-kubeconfig. The control plane gets a template of it, and a policy that
carries it to this cluster alone and leaves it there whatever becomes of the
template. Before anything is written, the control plane and the cluster are asked
what would happen: what would change the running object is refused.

With --dependencies what the object refers to comes along: its ConfigMaps, Secrets,
claims, service account, and what customizations of the control plane know. When a
step fails, what was made is removed again.

With --undo the object goes on running in its cluster and is the fleet's no longer:
template and policy are removed, and so are the fleet's labels and its share in the
managed fields in the cluster. A template that was there before stays.`,
		Example: `  # a Deployment, with its ConfigMaps and Secrets
  flotilla promote deployment web -n shop -C east --dependencies

  # what would be made? (client: do not even ask whether it would work)
  flotilla promote deployment web -n shop -C east --dry-run=server
  flotilla promote deployment web -n shop -C east --dry-run=client -o yaml

  # leave it to a policy that is there
  flotilla promote deployment web -n shop -C east --auto-create-policy=false

  # and back
  flotilla promote deployment web -n shop -C east --undo`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := kindAndName(args)
			if err == nil {
				err = p.wrong()
			}
			if err != nil {
				return command.Usage(err)
			}
			if p.undo {
				return p.back(cmd, kind, name)
			}
			return p.promote(cmd, kind, name)
		},
		ValidArgsFunction: p.complete,
	}
	p.addFlags(cmd)
	return cmd
}

func (p *promoteFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&p.cluster, "cluster", "C", "", "cluster that the object runs in")
	flags.StringVar(&p.kubeconfig, "cluster-kubeconfig", "", "file that leads to the cluster; default is through the control plane")
	flags.StringVar(&p.context, "cluster-context", "", "context of the cluster in that file; default is the current one")
	flags.BoolVar(&p.autoPolicy, "auto-create-policy", true, "make a policy that carries the object")
	flags.StringVar(&p.policyName, "policy-name", "", "name of that policy; default is made of the object's")
	flags.BoolVarP(&p.dependencies, "dependencies", "d", false, "take along what the object refers to")
	flags.StringVarP(&p.output, "output", "o", "", "yaml or json: print what is made; Secrets are left out")
	flags.StringVar(&p.dryRun, "dry-run", "none", "none, server: ask whether it would work, or client: do not even ask")
	flags.Lookup("dry-run").NoOptDefVal = "client"
	flags.BoolVar(&p.allowChanges, "allow-changes", false, "go on although the running object would be changed")
	flags.BoolVar(&p.undo, "undo", false, "give the object back to its cluster")
	flags.DurationVar(&p.wait, "wait", time.Minute, "with --undo: how long it may take until the cluster has it back")
	for flag, complete := range map[string]cobra.CompletionFunc{
		"cluster": p.fleet.CompleteClusters,
		"dry-run": cobra.FixedCompletions([]string{"none", "server", "client"}, cobra.ShellCompDirectiveNoFileComp),
		"output":  cobra.FixedCompletions([]string{"yaml", "json"}, cobra.ShellCompDirectiveNoFileComp),
	} {
		if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
			panic(err) // it was defined above
		}
	}
}

func kindAndName(args []string) (kind, name string, err error) {
	switch len(args) {
	case 2:
		return args[0], args[1], nil
	case 1:
		if kind, name, ok := strings.Cut(args[0], "/"); ok && kind != "" && name != "" {
			return kind, name, nil
		}
		return "", "", errors.New("NAME is missing: flotilla promote KIND NAME -C CLUSTER")
	case 0:
		return "", "", errors.New("KIND is missing: flotilla promote KIND NAME -C CLUSTER")
	default:
		return "", "", fmt.Errorf("%q is too much: promote KIND NAME -C CLUSTER", args[2])
	}
}

// wrong returns an error about the flags, and normalizes them.
func (p *promoteFlags) wrong() error {
	switch p.dryRun {
	case "false":
		p.dryRun = "none"
	case "true", "":
		p.dryRun = "client"
	}
	switch {
	case p.cluster == "":
		return errors.New("--cluster is missing: name the cluster that the object runs in")
	case !slices.Contains([]string{"none", "client", "server"}, p.dryRun):
		return fmt.Errorf("there is no --dry-run %q: it is none, client or server", p.dryRun)
	case command.Output(p.output, "yaml", "json") != nil:
		return command.Output(p.output, "yaml", "json")
	case p.context != "" && p.kubeconfig == "":
		return errors.New("--cluster-context is about the file that --cluster-kubeconfig names")
	case !p.autoPolicy && p.policyName != "" && !p.undo:
		return errors.New("--policy-name names the policy that is made: --auto-create-policy=false makes none")
	case p.undo && (p.dependencies || p.allowChanges || !p.autoPolicy || p.output != ""):
		return errors.New("--undo gives back what the policy carries: it goes with --cluster, --policy-name, --wait and --dry-run alone")
	}
	return nil
}

// promote makes the object part of the fleet.
func (p *promoteFlags) promote(cmd *cobra.Command, kind, name string) error {
	hub, err := p.fleet.Client()
	if err != nil {
		return fleet.Describe(err)
	}
	mapper, member, err := p.member()
	if err != nil {
		return err
	}
	of, err := p.object(mapper, kind, name)
	if err != nil {
		return p.unread(err)
	}
	knowledge, err := knowledgeOf(cmd.Context(), hub)
	if err != nil {
		return fleet.Describe(err)
	}
	planned, err := promotion.Plan(cmd.Context(), of, promotion.Options{
		Cluster: p.cluster, Hub: hub, Member: member, Direct: p.kubeconfig != "", Interpreter: knowledge,
		Dependencies: p.dependencies, PolicyName: p.policyName, NoPolicy: !p.autoPolicy,
		AllowChanges: p.allowChanges, Unrehearsed: p.dryRun == "client", Now: time.Now(),
	})
	if err != nil {
		return p.failed(err)
	}
	for _, note := range planned.Notes {
		if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", note); err != nil {
			return err
		}
	}
	if p.dryRun == "none" {
		if err := planned.Carry(cmd.Context()); err != nil {
			return fleet.Describe(err)
		}
	}
	return p.report(cmd, planned)
}

// back gives the object back to the cluster.
func (p *promoteFlags) back(cmd *cobra.Command, kind, name string) error {
	hub, err := p.fleet.Client()
	if err != nil {
		return fleet.Describe(err)
	}
	_, member, err := p.member()
	if err != nil {
		return err
	}
	mapper, err := p.fleet.Factory().ToRESTMapper()
	if err != nil {
		return fleet.Describe(err)
	}
	of, err := p.object(mapper, kind, name)
	if err != nil {
		return fleet.Describe(err)
	}
	returned, err := promotion.Undo(cmd.Context(), of, promotion.UndoOptions{
		Cluster: p.cluster, Hub: hub, Member: member, PolicyName: p.policyName, Within: p.wait, DryRun: p.dryRun != "none",
	})
	if err != nil {
		return p.failed(fleet.Meanwhile(of.String(), err))
	}
	return p.reportReturned(cmd, returned)
}

// reportReturned prints what was given back and what stays.
func (p *promoteFlags) reportReturned(cmd *cobra.Command, returned *promotion.Returned) error {
	var lines []string
	for _, g := range returned.Objects {
		line := fmt.Sprintf("%s given back to cluster %s%s", g, p.cluster, p.suffix())
		if slices.Contains(returned.Kept, g) {
			line = fmt.Sprintf("%s given back to cluster %s; its template was there before and stays%s", g, p.cluster, p.suffix())
		}
		lines = append(lines, line)
	}
	if returned.PolicyKept {
		lines = append(lines, fmt.Sprintf("%s was there before and stays%s", returned.Policy, p.suffix()))
	} else {
		lines = append(lines, fmt.Sprintf("%s deleted%s", returned.Policy, p.suffix()))
	}
	for _, note := range returned.Notes {
		if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", note); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
	return err
}

// suffix returns a note for a dry run; empty otherwise.
func (p *promoteFlags) suffix() string {
	switch p.dryRun {
	case "client":
		return " (dry run)"
	case "server":
		return " (server dry run)"
	default:
		return ""
	}
}

// member returns a mapper and a client of the cluster.
func (p *promoteFlags) member() (meta.RESTMapper, client.Client, error) {
	factory := p.fleet.Member(p.cluster)
	if p.kubeconfig != "" {
		own := genericclioptions.NewConfigFlags(true)
		own.KubeConfig, own.Context = &p.kubeconfig, &p.context
		factory = cmdutil.NewFactory(own)
	}
	cfg, err := factory.ToRESTConfig()
	if err != nil && p.kubeconfig != "" {
		err = contexts.Explain(factory.ToRawKubeConfigLoader(), p.context, err)
		return nil, nil, fmt.Errorf("find cluster %s: %w; --cluster-kubeconfig names the file that leads to it", p.cluster, err)
	}
	if err != nil {
		return nil, nil, fleet.Describe(err)
	}
	if p.kubeconfig != "" {
		p.host = cfg.Host
	}
	cfg.QPS = -1
	member, err := client.New(cfg, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, nil, err
	}
	mapper, err := factory.ToRESTMapper()
	return mapper, member, fleet.Describe(err)
}

// failed explains an error of the control plane or of the cluster.
func (p *promoteFlags) failed(err error) error {
	var request *url.Error
	if p.host != "" && errors.As(err, &request) && strings.HasPrefix(request.URL, p.host) {
		return p.unread(err)
	}
	return fleet.Describe(err)
}

// unread explains an error of the cluster.
func (p *promoteFlags) unread(err error) error {
	var request *url.Error
	if p.kubeconfig != "" && errors.As(err, &request) && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("cluster %s does not answer: %w; --cluster-kubeconfig names the file that leads to it", p.cluster, request)
	}
	return fleet.DescribeOf(p.cluster, err)
}

// object finds the kind for a word such as Deployment, deploy or deployments.apps.
func (p *promoteFlags) object(mapper meta.RESTMapper, word, name string) (promotion.Object, error) {
	versioned, plain := schema.ParseResourceArg(strings.ToLower(word))
	var gvk schema.GroupVersionKind
	err := error(&meta.NoResourceMatchError{})
	if versioned != nil {
		gvk, err = mapper.KindFor(*versioned)
	}
	if meta.IsNoMatchError(err) {
		gvk, err = mapper.KindFor(plain.WithVersion(""))
	}
	if meta.IsNoMatchError(err) {
		return promotion.Object{}, fmt.Errorf("cluster %s knows no kind %q: flotilla api-resources -C %s lists them", p.cluster, word, p.cluster)
	}
	if err != nil {
		return promotion.Object{}, err
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return promotion.Object{}, err
	}
	of := promotion.Object{GroupVersionKind: gvk, Name: name}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		of.Namespace, _, err = p.fleet.Factory().ToRawKubeConfigLoader().Namespace()
	}
	return of, err
}

// knowledgeOf returns the control plane's interpreter, without webhooks.
func knowledgeOf(ctx context.Context, hub client.Reader) (*interpreter.Interpreter, error) {
	list := &configv1alpha1.ResourceInterpreterCustomizationList{}
	if err := hub.List(ctx, list); err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("read the ResourceInterpreterCustomizations: %w", err)
	}
	all := make([]*configv1alpha1.ResourceInterpreterCustomization, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return customization.NewStack(lua.New(lua.Options{Now: time.Now}), all).Interpreter(), nil
}

// complete offers clusters' kinds; names are not looked up in members.
func (p *promoteFlags) complete(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offers []string
	for _, kind := range []string{"configmap", "cronjob", "daemonset", "deployment", "ingress", "secret", "service", "statefulset"} {
		if strings.HasPrefix(kind, word) {
			offers = append(offers, kind)
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}
