package registration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/join"
)

// joining is a call of join.
type joining struct {
	fleet  *fleet.Flags
	member memberFlags
	opts   join.Options
	within time.Duration
}

func newJoin(f *fleet.Flags) *cobra.Command {
	j := &joining{fleet: f}
	cmd := &cobra.Command{
		Use:   "join NAME",
		Short: "Add a cluster to the fleet, in push mode",
		Long: `Add a cluster to the fleet, in push mode: the control plane reaches into it.

Join makes accounts for the control plane in the cluster, keeps their tokens as
Secrets in the control plane, and registers the cluster under NAME. It may be run
again: after an interruption it finishes, and a cluster that has joined gets its
accounts, its tokens and its address brought up to date.

The cluster then carries the claim of this control plane, and another one leaves it
alone. Join refuses a cluster that another control plane has, unless --take-over says
that it is to lose it. What that means for each object there is printed first; with
--dry-run nothing else happens.`,
		Example: `  flotilla join east --cluster-kubeconfig ~/.kube/config --cluster-context east
  flotilla join east --cluster-kubeconfig ~/.kube/config --take-over --dry-run`,
		Args:              command.Exactly("NAME"),
		ValidArgsFunction: f.CompleteClusters, // for clusters that are joined again
		RunE:              j.run,
	}
	flags := cmd.Flags()
	j.member.addTo(flags)
	j.member.complete(cmd)
	flags.StringVar(&j.opts.Provider, "cluster-provider", "", "who runs the cluster, for policies to select by")
	flags.StringVar(&j.opts.Region, "cluster-region", "", "region of the cluster, for policies to select by")
	flags.StringSliceVar(&j.opts.Zones, "cluster-zones", nil, "zones of the cluster, for policies to select by")
	flags.StringVar(&j.opts.ApplyAs, "apply-as", "", "as whom templates are applied there: "+clusterv1alpha1.ApplyAsAuthor+", as who applied them, with his rights, as a new cluster without the flag; or "+clusterv1alpha1.ApplyAsHub+", with all rights")
	flags.BoolVar(&j.opts.TakeOver, "take-over", false, "take the cluster from another control plane that has it, after printing what that means")
	flags.BoolVar(&j.opts.DryRun, "dry-run", false, "print what would be done")
	flags.DurationVar(&j.within, "wait", 30*time.Second, "how long to wait until the control plane finds the cluster ready; 0 does not wait")
	completeApplyAs(cmd)
	return cmd
}

func (j *joining) run(cmd *cobra.Command, args []string) (err error) {
	j.opts.Name, j.opts.Namespace, j.opts.Allow = args[0], j.member.namespace, j.member.allow
	if j.member.kubeconfig == "" {
		return command.Usage(errors.New("--cluster-kubeconfig is missing: name the file that leads to the member cluster"))
	}
	if err := join.CheckApplyAs(j.opts.ApplyAs); err != nil {
		return command.Usage(fmt.Errorf("--apply-as: %w", err))
	}
	if j.opts.Hub, err = j.fleet.Client(); err != nil {
		return fleet.Describe(err)
	}
	if j.opts.MemberConfig, j.opts.Member, err = j.member.connect(); err != nil {
		return err
	}
	if cfg, err := j.fleet.Config(); err == nil {
		j.opts.Address = cfg.Host
	}
	if j.opts.TakeOver {
		if err := j.explain(cmd); err != nil {
			return err
		}
	}
	if j.opts.DryRun {
		j.opts.Progress = printSteps(cmd.OutOrStdout())
	}
	if err := join.Join(cmd.Context(), j.opts); err != nil {
		return described(j.fleet, fleet.Meanwhile("cluster "+j.opts.Name, err))
	}
	if j.opts.DryRun {
		return nil
	}
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "cluster %s joined\n", j.opts.Name); err != nil || j.within == 0 {
		return err
	}
	err = join.Ready(cmd.Context(), j.opts.Hub, j.opts.Name, j.within)
	if err == nil || interrupted(cmd.Context()) {
		return err
	}
	return warn(cmd.ErrOrStderr(), err)
}

// explain prints the consequences of taking over the cluster.
func (j *joining) explain(cmd *cobra.Command) error {
	id, err := join.HubIdentity(cmd.Context(), j.opts.Hub)
	if err != nil {
		return described(j.fleet, err)
	}
	plan, err := join.PlanTakeOver(cmd.Context(), j.opts.Hub, id, j.opts.Member, j.opts.MemberConfig)
	if err != nil {
		return described(j.fleet, err)
	}
	return printTakeOver(cmd.OutOrStdout(), plan)
}

func printSteps(out io.Writer) func(join.Step) {
	return func(step join.Step) { _, _ = fmt.Fprintln(out, step) }
}

// Join joins a member whose kubeconfig has a context of its name, and waits until
// it is ready. It prints nothing.
func Join(ctx context.Context, hubKubeconfig, name, memberKubeconfig string) error {
	_, hub, err := connect("the control plane", hubKubeconfig, "")
	if err != nil {
		return err
	}
	cfg, member, err := connect("the member cluster", memberKubeconfig, name)
	if err != nil {
		return err
	}
	if err := join.Join(ctx, join.Options{Name: name, Hub: hub, Member: member, MemberConfig: cfg}); err != nil {
		return err
	}
	const timeout = 30 * time.Second
	return join.Ready(ctx, hub, name, timeout)
}
