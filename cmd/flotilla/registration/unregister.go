package registration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/registration/installation"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/join/outlook"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
	"github.com/flotilla-io/flotilla/internal/setback"
)

// unregistering is a call of unregister.
type unregistering struct {
	fleet   *fleet.Flags
	name    string
	config  string
	context string
	member  memberFlags
	// there is the connection to the member; nil without --cluster-kubeconfig.
	there *rest.Config
	agent installation.Options
	wait  time.Duration
	// asAgent is true if the connection to the control plane uses the agent's credentials.
	asAgent bool
	// removed is true if an agent was found in the cluster, and is removed.
	removed bool
}

func newUnregister(f *fleet.Flags) *cobra.Command {
	u := &unregistering{fleet: f}
	cmd := &cobra.Command{
		Use:   "unregister NAME",
		Short: "Take a cluster out of the fleet that is in pull mode",
		Long: `Take a cluster out of the fleet that is in pull mode: its agent removes what the
fleet runs there, then the registration goes, and with --cluster-kubeconfig the agent.

The control plane is found by --karmada-config or --kubeconfig; without both, by the
agent's own way to it, which is in the cluster.`,
		Example: `  flotilla unregister north --cluster-kubeconfig ~/.kube/config --cluster-context north
  flotilla unregister north --kubeconfig hub.kubeconfig`,
		Args:              command.Exactly("NAME"),
		ValidArgsFunction: fleet.ClustersThat(f, func(c *clusterv1alpha1.Cluster) bool { return c.Spec.SyncMode == clusterv1alpha1.Pull }, true),
		RunE:              u.run,
	}
	flags := cmd.Flags()
	u.member.addTo(flags)
	u.member.complete(cmd)
	flags.StringVar(&u.config, "karmada-config", "", "file that leads to the control plane; default is the agent's own, from the cluster")
	flags.StringVar(&u.context, "karmada-context", "", "context of the control plane in that file; default is the current one")
	flags.StringVar(&u.agent.Name, "agent-name", installation.DefaultName, "name of the agent's Deployment")
	flags.StringVarP(&u.agent.Namespace, "namespace", "n", workv1alpha2.NamespaceKarmadaSystem, "namespace in the member that the agent runs in")
	flags.DurationVar(&u.wait, "wait", time.Minute, "how long the cluster may take to leave")
	flags.BoolVar(&u.agent.DryRun, "dry-run", false, "print what would be done")
	return cmd
}

func (u *unregistering) run(cmd *cobra.Command, args []string) (err error) {
	u.name = args[0]
	if !identity.IsClusterName(u.name) {
		return command.Usage(fmt.Errorf("%q is no name for a cluster", u.name))
	}
	u.agent.Cluster = u.name
	u.agent.Progress = func(step string) {
		u.removed = u.removed || strings.Contains(step, "Deployment")
		if u.agent.DryRun {
			_, _ = fmt.Fprintln(cmd.OutOrStdout(), step+" (member)")
		}
	}
	var member client.Client
	if u.member.kubeconfig != "" {
		if u.there, member, err = u.member.connect(); err != nil {
			return err
		}
		reports(cmd.ErrOrStderr())(asking(u.name, u.there))
	}
	cfg, hub, err := u.connect(cmd.Context(), member)
	if err != nil {
		return err
	}
	id, err := join.HubIdentity(cmd.Context(), hub) // an agent's rights go with its cluster
	if err != nil {
		return u.describe(err)
	}
	if err := u.mayLeave(cmd.Context(), cfg, join.UnjoinOptions{Name: u.name, Hub: hub, HubID: id, Member: member}); err != nil {
		return u.describe(err)
	}
	itself := member != nil && join.Itself(cmd.Context(), hub, member)
	d := &join.Departure{Name: u.name, Hub: hub, Report: reports(cmd.ErrOrStderr())}
	left := &leftovers{departure: d, member: u.there, hub: id, pull: true}
	if err := u.leave(cmd, hub, left); err != nil {
		return goesOn(cmd, d, err)
	}
	if member != nil {
		if err := u.cleanUp(cmd, member, id, itself); err != nil {
			return err
		}
	}
	if u.agent.DryRun {
		return nil
	}
	if _, err = fmt.Fprintf(cmd.OutOrStdout(), "cluster %s unregistered\n", u.name); err != nil {
		return err
	}
	if err := left.warn(cmd); err != nil {
		return err
	}
	return u.remind(cmd.ErrOrStderr())
}

// remind prints that an agent which was not removed does not end by itself.
func (u *unregistering) remind(out io.Writer) (err error) {
	switch {
	case u.removed:
	case u.member.kubeconfig != "":
		_, err = fmt.Fprintf(out, "no agent is installed in cluster %s; one that runs as a process does not end by itself: stop it\n", u.name)
	default:
		_, err = fmt.Fprintf(out, "the agent of cluster %s does not end by itself: stop its process, or remove it from the cluster by flotilla unregister %[1]s --cluster-kubeconfig FILE --karmada-config HUBFILE\n", u.name)
	}
	return err
}

// describe explains an error of the control plane, also for the agent's credentials, which have fewer
// rights than an administrator's, and one of a member that does not answer.
func (u *unregistering) describe(err error) error {
	var request *url.Error
	if u.there != nil && errors.As(err, &request) && strings.HasPrefix(request.URL, u.there.Host) {
		return fmt.Errorf("the member does not answer: where it is gone for good, leave --cluster-kubeconfig out, and what the fleet has there stays: %w", err)
	}
	if u.asAgent && apierrors.IsForbidden(err) {
		return fmt.Errorf("the agent's own credentials do not allow to take cluster %s out (%w): name an administrator's kubeconfig of the control plane with --karmada-config", u.name, err)
	}
	return fleet.Describe(fleet.Meanwhile("cluster "+u.name, err))
}

// mayLeave returns an error if the control plane may not remove the cluster, before anything is done.
// That is the case for a copy of the control plane for which the agent works.
func (u *unregistering) mayLeave(ctx context.Context, cfg *rest.Config, o join.UnjoinOptions) error {
	cluster := &clusterv1alpha1.Cluster{}
	if err := o.Hub.Get(ctx, client.ObjectKey{Name: u.name}, cluster); ignoreGone(err) != nil {
		return err
	}
	if o.Member != nil {
		by, err := join.Ceded(ctx, o)
		if err != nil {
			return err
		}
		if by != "" {
			return fmt.Errorf("cluster %s belongs to another control plane, %s: the agent there is that one's. Without --cluster-kubeconfig it leaves this control plane alone", u.name, by)
		}
	}
	o.Opened = setback.Opened(cfg)
	return join.MayLeave(ctx, o, cluster)
}

// connect connects to the control plane.
func (u *unregistering) connect(ctx context.Context, member client.Client) (*rest.Config, client.Client, error) {
	switch {
	case u.config != "":
		return connect("the control plane", u.config, u.context)
	case u.fleet.Kubeconfig != "" || member == nil:
		own := &fleet.Flags{Kubeconfig: u.fleet.Kubeconfig, Context: u.context}
		cfg, err := own.Config()
		if err != nil {
			return nil, nil, fleet.Describe(err)
		}
		hub, err := own.Client()
		return cfg, hub, fleet.Describe(err)
	}
	u.asAgent = true
	content, err := installation.Kubeconfig(ctx, member, u.agent.Namespace)
	if apierrors.IsNotFound(err) {
		return nil, nil, fmt.Errorf("there is no agent in %s of that cluster: --namespace says where it is, or --karmada-config leads to the control plane. A cluster in push mode leaves with flotilla unjoin", u.agent.Namespace)
	}
	if err != nil {
		return nil, nil, u.describe(err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		return nil, nil, errors.New("the agent's way to the control plane cannot be read: --karmada-config leads there, too")
	}
	hub, err := client.New(cfg, client.Options{Scheme: scheme.New()})
	return cfg, hub, err
}

// leave removes the registration, and waits until it is gone: the agent, which
// removes what the fleet runs, is needed until then.
func (u *unregistering) leave(cmd *cobra.Command, hub client.Client, left *leftovers) error {
	cluster := &clusterv1alpha1.Cluster{}
	err := hub.Get(cmd.Context(), client.ObjectKey{Name: u.name}, cluster)
	switch {
	case apierrors.IsNotFound(err):
		return u.abandon(cmd, hub)
	case err != nil:
		return u.describe(err)
	case cluster.Spec.SyncMode != clusterv1alpha1.Pull:
		return fmt.Errorf("the cluster %s is in push mode: flotilla unjoin %s takes it out", u.name, u.name)
	}
	ways, err := left.inside()
	if err != nil {
		return err
	}
	if u.agent.DryRun {
		if err := join.Going(cmd.Context(), hub, cluster, ways, printSteps(cmd.OutOrStdout())); err != nil {
			return u.describe(err)
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "would remove Cluster %s (hub)\n", u.name)
		return err
	}
	will, err := outlook.Of(cmd.Context(), hub, cluster, ways)
	if ignoreGone(err) != nil { // an agent may not see all
		return u.describe(err)
	}
	left.predict(will)
	return u.follow(cmd, hub, cluster, left.departure)
}

// follow removes the registration, and waits until it is gone. It looks before what there is: of a cluster
// whose agent has been silent for long, all may be let go of in the moment in which the registration goes.
func (u *unregistering) follow(cmd *cobra.Command, hub client.Client, cluster *clusterv1alpha1.Cluster, d *join.Departure) error {
	if _, err := d.Check(cmd.Context(), cluster); err != nil {
		return u.describe(err)
	}
	if err := hub.Delete(cmd.Context(), cluster, client.Preconditions{UID: &cluster.UID}); client.IgnoreNotFound(err) != nil {
		return u.describe(err)
	}
	if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "the control plane takes cluster %s out, for up to %s\n", u.name, u.wait); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(cmd.Context(), leavePoll, u.wait, true, func(ctx context.Context) (bool, error) {
		is := &clusterv1alpha1.Cluster{}
		err := hub.Get(ctx, client.ObjectKey{Name: u.name}, is)
		if ignoreGone(err) != nil {
			return false, err
		}
		if err != nil { // an agent's rights go with its cluster
			return true, d.Observe(ctx, nil)
		}
		return false, d.Observe(ctx, is)
	})
	if wait.Interrupted(err) && !interrupted(cmd.Context()) {
		return fmt.Errorf("the cluster %s has not left after %s: its agent removes what the fleet runs there; run again to wait on", u.name, u.wait)
	}
	return u.describe(err)
}

const leavePoll = 500 * time.Millisecond

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// abandon removes a registration whose agent never created a Cluster.
func (u *unregistering) abandon(cmd *cobra.Command, hub client.Client) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: identity.Role(u.name)}}
	err := hub.Get(cmd.Context(), client.ObjectKeyFromObject(role), role)
	if ignoreGone(err) != nil {
		return u.describe(err)
	}
	if err != nil {
		if u.member.kubeconfig != "" { // what is left in the cluster is removed all the same
			_, err := fmt.Fprintf(cmd.ErrOrStderr(), "warning: there is no cluster %s in the fleet\n", u.name)
			return err
		}
		return fleet.NoCluster(cmd.Context(), hub, u.name)
	}
	if u.agent.DryRun {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "would remove the rights of %s (hub)\n", identity.Agent(u.name))
		return err
	}
	return u.describe(client.IgnoreNotFound(hub.Delete(cmd.Context(), role)))
}

// cleanUp removes the agent from the member, and the accounts that it created there. It leaves the
// accounts if the member is the control plane itself, where their namespace has the credentials of
// all clusters.
func (u *unregistering) cleanUp(cmd *cobra.Command, member client.Client, hub string, itself bool) error {
	if err := installation.Remove(cmd.Context(), member, u.agent); err != nil || itself {
		return fleet.Meanwhile("cluster "+u.name, err)
	}
	return fleet.Meanwhile("cluster "+u.name, join.CleanUp(cmd.Context(), join.UnjoinOptions{
		Name: u.name, HubID: hub, Member: member, Namespace: u.member.namespace, DryRun: u.agent.DryRun,
		Progress: func(step join.Step) {
			if u.agent.DryRun {
				_, _ = fmt.Fprintln(cmd.OutOrStdout(), step)
			}
		},
	}))
}
