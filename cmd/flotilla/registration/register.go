package registration

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/registration/installation"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/contexts"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/registration"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// registering is a call of register.
type registering struct {
	hub        registration.Discovery
	expiration int32
	member     struct{ kubeconfig, context string }
	cluster    clusterFlags
	agent      installation.Options
	standalone string
	takeOver   bool
	within     time.Duration
}

// clusterFlags are the flags about the cluster that the agent gets.
type clusterFlags struct {
	name, namespace, provider, region string
	zones                             []string
	proxy                             string
}

func newRegister() *cobra.Command {
	r := &registering{}
	cmd := &cobra.Command{
		Use:   "register ENDPOINT",
		Short: "Make a cluster a member of the fleet, in pull mode",
		Long: `Make a cluster a member of the fleet, in pull mode: its agent reaches out to the
control plane at ENDPOINT, which need not reach the cluster.

Register finds the control plane by a token, checks that it is the one that was
meant, gets a certificate for the agent, and installs the agent in the cluster. It
runs beside the cluster, with the kubeconfig of the cluster; the line to run is
printed by flotilla token create --print-register-command.

The cluster then carries the claim of that control plane. Register refuses a cluster
that another one has, unless --take-over says that it is to lose it.

With --standalone the agent is not installed: its way to the control plane is
written to a folder, for a flotilla-agent that runs where you like.`,
		Example: `  flotilla register hub.example.org:6443 --token 3a4b5c.0123456789abcdef \
    --discovery-token-ca-cert-hash sha256:... --cluster-name north \
    --karmada-agent-image registry.example/flotilla-agent:v1`,
		Args: command.Exactly("ENDPOINT"),
		RunE: r.run,
	}
	r.addFlags(cmd)
	return cmd
}

func (r *registering) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&r.hub.Token, "token", "", "bootstrap token, from flotilla token create (required)")
	flags.StringSliceVar(&r.hub.CAHashes, "discovery-token-ca-cert-hash", nil, "hash of the control plane's authority, as sha256:HEX; one of several must fit")
	flags.BoolVar(&r.hub.UnsafeSkipCAVerification, "discovery-token-unsafe-skip-ca-verification", false, "trust whoever knows the token to be the control plane")
	flags.DurationVar(&r.hub.Timeout, "discovery-timeout", registration.DefaultTimeout, "how long to look for the control plane, and then to wait for the certificate")
	flags.Int32Var(&r.expiration, "cert-expiration-seconds", int32(registration.DefaultExpiration/time.Second), "how long the agent's certificate is to be good; the agent renews it in time")
	flags.StringVar(&r.member.kubeconfig, "kubeconfig", "", "file that leads to the member cluster; default is $KUBECONFIG or ~/.kube/config")
	flags.StringVar(&r.member.context, "context", "", "context of the member cluster in that file; default is the current one")
	flags.StringVarP(&r.agent.Namespace, "namespace", "n", workv1alpha2.NamespaceKarmadaSystem, "namespace in the member that the agent runs in")
	flags.StringVar(&r.cluster.name, "cluster-name", "", "name of the cluster in the fleet; default is what the kubeconfig calls it")
	flags.StringVar(&r.cluster.namespace, "cluster-namespace", workv1alpha2.NamespaceKarmadaCluster, "namespace for accounts in the member")
	flags.StringVar(&r.cluster.provider, "cluster-provider", "", "who runs the cluster; counts if its token says the same, or once an administrator of the control plane has approved it")
	flags.StringVar(&r.cluster.region, "cluster-region", "", "region of the cluster; counts as --cluster-provider does")
	flags.StringSliceVar(&r.cluster.zones, "cluster-zones", nil, "zones of the cluster; count as --cluster-provider does")
	flags.StringVar(&r.cluster.proxy, "proxy-server-address", "", "URL of a proxy between the control plane and the cluster")
	flags.StringVar(&r.agent.Image, "karmada-agent-image", "", "image of the agent, from a registry that the cluster can pull from (required, but with --standalone)")
	flags.Int32Var(&r.agent.Replicas, "karmada-agent-replicas", 1, "how many agents run; 1, since each keeps what it knows to itself")
	flags.StringVar(&r.standalone, "standalone", "", "folder to write the agent's kubeconfig to, instead of installing the agent")
	flags.DurationVar(&r.within, "wait", 30*time.Second, "how long to wait until the cluster is ready; 0 does not wait")
	flags.BoolVar(&r.takeOver, "take-over", false, "take the cluster from another control plane that has it, after printing what that means")
	flags.BoolVar(&r.agent.DryRun, "dry-run", false, "print what would be done; nobody is asked but for --take-over")
	// Scripts for karmadactl use them.
	flags.Bool("enable-cert-rotation", true, "ignored: the agent always renews its certificate")
	flags.String("ca-cert-path", "", "ignored: the authority is kept in the agent's kubeconfig")
	for _, name := range []string{"enable-cert-rotation", "ca-cert-path"} {
		if err := flags.MarkHidden(name); err != nil {
			panic(err) // it is defined above
		}
	}
}

func (r *registering) run(cmd *cobra.Command, args []string) error {
	r.hub.Endpoint = args[0]
	r.hub.Report = func(why error) { _, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s; asking again\n", why) }
	if err := r.check(); err != nil {
		return command.Usage(err)
	}
	cfg, err := r.find()
	if err != nil {
		return err
	}
	if r.agent.DryRun {
		return r.plan(cmd, cfg)
	}
	var file *place
	if r.standalone != "" {
		if file, err = takePlace(r.standalone); err != nil {
			return err
		}
		defer file.free()
	}
	member, err := client.New(cfg, client.Options{Scheme: scheme.New()})
	if err != nil {
		return fmt.Errorf("connect to the member cluster at %s: %w", cfg.Host, err)
	}
	system := &corev1.Namespace{}
	if err := member.Get(cmd.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return fleet.DescribeOf("the member cluster", fmt.Errorf("read the identity of the member cluster: %w", err))
	}
	if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "asking the control plane at %s for the certificate of cluster %s, for up to %s\n", r.hub.Endpoint, r.cluster.name, r.hub.Timeout); err != nil {
		return err
	}
	byToken, err := registration.Discover(cmd.Context(), r.hub)
	if err != nil {
		return err
	}
	r.agent.Cluster, r.agent.Args = r.cluster.name, r.args(cfg)
	if err := r.prepare(cmd.Context(), byToken, member); err != nil {
		return fmt.Errorf("cluster %s is not registered, and its token is as good as before: %w", r.cluster.name, err)
	}
	hub, kubeconfig, err := r.credentials(cmd.Context(), byToken, string(system.UID))
	if err != nil {
		return err
	}
	if err := r.claim(cmd, hub, member, cfg); err != nil {
		return err
	}
	if file != nil {
		return r.write(cmd, file, kubeconfig)
	}
	r.agent.Kubeconfig = kubeconfig
	if err := installation.Install(cmd.Context(), member, r.agent); err != nil {
		return fleet.Meanwhile("cluster "+r.cluster.name, err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "cluster %s registered: its agent is the Deployment %s/%s\n", r.cluster.name, r.agent.Namespace, installation.DefaultName)
	if err == nil && !r.agent.Lasting {
		_, err = fmt.Fprintln(cmd.ErrOrStderr(), "the cluster has no default StorageClass: what the agent knows does not outlive its Pod, and a new Pod waits for the control plane")
	}
	if err != nil || r.within == 0 {
		return err
	}
	return r.await(cmd, hub, member)
}

// check returns an error for wrong flags, before any request.
func (r *registering) check() error {
	switch {
	case r.hub.Token == "":
		return errors.New("--token is missing: flotilla token create makes one, where the control plane is")
	case len(r.hub.CAHashes) == 0 && !r.hub.UnsafeSkipCAVerification:
		return errors.New("--discovery-token-ca-cert-hash is missing: flotilla token create --print-register-command prints it")
	case r.cluster.name != "" && !identity.IsClusterName(r.cluster.name):
		return fmt.Errorf("--cluster-name %q is no name for a cluster: at most 48 characters, each a-z, 0-9 or -, the first and last no -", r.cluster.name)
	case r.agent.Replicas != 1:
		return fmt.Errorf("--karmada-agent-replicas %d: one agent runs, since each keeps what it knows to itself", r.agent.Replicas)
	case r.agent.Image == imageToFillIn && r.standalone == "":
		return errors.New("--karmada-agent-image IMAGE: put an image of flotilla-agent in the place of IMAGE that the cluster can pull, such as registry.example/flotilla-agent:v1; --standalone FOLDER runs the agent without one")
	case r.expiration < minExpiration:
		return fmt.Errorf("--cert-expiration-seconds %d is too short: at least %d", r.expiration, minExpiration)
	}
	if err := r.hub.Check(); err != nil || r.agent.Image != "" || r.standalone != "" {
		return err
	}
	return errors.New("--karmada-agent-image is missing: name an image of flotilla-agent that the cluster can pull, such as registry.example/flotilla-agent:v1; --standalone FOLDER runs the agent without one")
}

// minExpiration is the shortest expiration, in seconds, that the API accepts.
const minExpiration = 600

// find returns the connection to the member. If no flag names the cluster, it uses the name in the
// kubeconfig.
func (r *registering) find() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = r.member.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: r.member.context})
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, withoutFile(fmt.Errorf("find the member cluster: %w", contexts.Explain(loader, r.member.context, err)), "--kubeconfig names the file that leads to it")
	}
	cfg.QPS = -1
	if r.cluster.name != "" {
		return cfg, nil
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("find the member cluster: %w", err)
	}
	current := r.member.context
	if current == "" {
		current = raw.CurrentContext
	}
	if context := raw.Contexts[current]; context != nil {
		r.cluster.name = context.Cluster
	}
	if !identity.IsClusterName(r.cluster.name) {
		return nil, command.Usage(fmt.Errorf("--cluster-name is missing: the kubeconfig calls the cluster %q, which is no name for one in the fleet", r.cluster.name))
	}
	return cfg, nil
}

// args returns the agent's flags about its cluster.
func (r *registering) args(member *rest.Config) []string {
	return append([]string{"--cluster-namespace=" + r.cluster.namespace, "--cluster-api-endpoint=" + member.Host}, r.reported()...)
}

// reported returns the agent's flags with what the user declared about the cluster.
func (r *registering) reported() []string {
	var out []string
	for _, flag := range [][2]string{
		{"--cluster-provider", r.cluster.provider}, {"--cluster-region", r.cluster.region},
		{"--cluster-zones", strings.Join(r.cluster.zones, ",")}, {"--proxy-server-address", r.cluster.proxy},
	} {
		if flag[1] != "" {
			out = append(out, flag[0]+"="+flag[1])
		}
	}
	return out
}

// prepare checks whether the agent can be installed. It runs before the token is used, because a
// token may be usable only once.
func (r *registering) prepare(ctx context.Context, byToken *rest.Config, member client.Client) error {
	id, err := registration.Identity(ctx, byToken)
	if err != nil {
		return err
	}
	if id != "" { // otherwise the control plane publishes its identity only to its agents
		if err := join.Unclaimed(ctx, join.ClaimOptions{Member: member, Hub: id, Cluster: r.cluster.name, TakeOver: r.takeOver}); err != nil {
			return err
		}
	}
	if r.standalone != "" {
		return nil
	}
	if r.agent.Lasting, err = installation.Lasting(ctx, member); err != nil {
		return err
	}
	return installation.Check(ctx, member, r.agent)
}

// credentials uses the token to get the agent's connection to the control plane, and returns it and
// its kubeconfig.
func (r *registering) credentials(ctx context.Context, byToken *rest.Config, id string) (*rest.Config, []byte, error) {
	got, err := registration.Request(ctx, byToken, registration.Options{
		Cluster: r.cluster.name, ClusterID: id, Expiration: time.Duration(r.expiration) * time.Second, Timeout: r.hub.Timeout,
	})
	if err != nil {
		return nil, nil, err
	}
	kubeconfig, err := registration.Kubeconfig(byToken, r.cluster.name, got)
	return registration.Connection(byToken, got), kubeconfig, err
}

// plan prints what would be done.
func (r *registering) plan(cmd *cobra.Command, member *rest.Config) error {
	if err := r.planTakeOver(cmd, member); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	_, err := fmt.Fprintf(out, "would ask the control plane at %s for the certificate of %s\n", r.hub.Endpoint, identity.Agent(r.cluster.name))
	if err != nil {
		return err
	}
	if r.standalone != "" {
		_, err := fmt.Fprintf(out, "would write %s\n", standaloneFile(r.standalone))
		return err
	}
	r.agent.Cluster, r.agent.Args = r.cluster.name, r.args(member)
	r.agent.Progress = func(step string) { _, _ = fmt.Fprintln(out, step+" (member)") }
	offline, err := client.New(&rest.Config{Host: member.Host}, client.Options{Scheme: scheme.New(), DryRun: new(bool)})
	if err != nil {
		return err
	}
	return installation.Install(cmd.Context(), offline, r.agent)
}

// write stores the agent's kubeconfig, and prints how to run the agent.
func (r *registering) write(cmd *cobra.Command, file *place, kubeconfig []byte) error {
	if err := file.keep(kubeconfig); err != nil {
		return err
	}
	line := fmt.Sprintf("flotilla-agent --karmada-kubeconfig %s --cluster-name %s", file.path, r.cluster.name)
	line += " --kubeconfig " + r.memberFile()
	if r.member.context != "" {
		line += " --context " + r.member.context
	}
	line = strings.Join(append([]string{line}, r.reported()...), " ")
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "cluster %s registered; it becomes a member when its agent runs:\n%s\n", r.cluster.name, line)
	return err
}

// memberFile returns the absolute path of the member's kubeconfig.
func (r *registering) memberFile() string {
	path := r.member.kubeconfig
	if path == "" {
		path = clientcmd.NewDefaultClientConfigLoadingRules().GetDefaultFilename()
	}
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// unapproved returns a message about declared properties of the cluster that an administrator has not
// approved; nil if there are none.
func (r *registering) unapproved(ctx context.Context, hub client.Client) error {
	cluster := &clusterv1alpha1.Cluster{}
	if err := hub.Get(ctx, client.ObjectKey{Name: r.cluster.name}, cluster); err != nil {
		return fmt.Errorf("read cluster %s: %w", r.cluster.name, err)
	}
	asked, err := identity.ParseProperties(cluster.Annotations[identity.RequestedAnnotation])
	if err != nil || asked.IsZero() {
		return nil //nolint:nilerr // the administrator sees it as well
	}
	return fmt.Errorf("%s of cluster %s counts once an administrator of the control plane has said it: flotilla patch cluster %s --type merge -p '%s'",
		asked.Words(), r.cluster.name, r.cluster.name, asked.Patch())
}

// await waits until the agent has made the cluster ready, and returns an error if that takes too long.
// It prints a warning about properties that an administrator has yet to approve.
func (r *registering) await(cmd *cobra.Command, hub *rest.Config, member client.Client) error {
	begin := time.Now()
	err := installation.Ready(cmd.Context(), member, r.agent, r.within)
	if err == nil {
		often := rest.CopyConfig(hub)
		often.QPS = -1 // it is asked many times a second
		own, failed := client.New(often, client.Options{Scheme: scheme.New()})
		if failed != nil {
			return failed
		}
		err = join.Ready(cmd.Context(), own, r.cluster.name, max(r.within-time.Since(begin), time.Second))
		if err == nil {
			if note := r.unapproved(cmd.Context(), own); note != nil {
				return warn(cmd.ErrOrStderr(), note)
			}
		}
	}
	if err == nil || interrupted(cmd.Context()) {
		return err
	}
	return r.notReady(err)
}

// notReady returns the error for a cluster that is registered and did not become ready in time.
func (r *registering) notReady(err error) error {
	var late *join.NotReadyError
	switch {
	case !errors.As(err, &late): // the agent, which is the Deployment's to start
		return fmt.Errorf("cluster %s is registered, and not ready: %w; flotilla status says how it is", r.cluster.name, err)
	case late.Silent:
		return fmt.Errorf("cluster %s is registered, and not ready after %s: %s; %s", r.cluster.name, r.within, late.Why, late.Next)
	default:
		return fmt.Errorf("cluster %s is registered, and not ready after %s: %s; its agent goes on trying, and flotilla status says how it is", r.cluster.name, r.within, late.Why)
	}
}
