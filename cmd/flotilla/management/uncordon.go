package management

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/draining"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// returnTimeout is how long uncordon waits until everything is placed anew.
const returnTimeout = 5 * time.Minute

func newUncordon(f *fleet.Flags) *cobra.Command {
	t := &target{fleet: f}
	var returns bool
	var timeout time.Duration
	e := edit{unset: []corev1.Taint{cordoned, failover.DrainTaint()}, done: "uncordoned", already: "already uncordoned"}
	cmd := cordonCommand(t, e, &cobra.Command{
		Use:   "uncordon NAME...",
		Short: "Let clusters take new work again",
		Long: `Let clusters take new work again, after cordon or drain. A drain ends: what is on its way
still goes, and nothing else does.

What a drain has moved stays where it is now, but for what runs as a whole wherever it may.
With --return it is placed anew, by what counts now, as flotilla rebalance has it: it comes
back unless there is no room or its policy means others by now. A cluster that it leaves for that keeps
the old copy until the new one is healthy; one that is to run fewer replicas runs fewer at
once. What was placed anew since is left alone, and so is what another scheduler places.`,
		Example: `  flotilla uncordon east west
  flotilla uncordon -l region=eu
  flotilla uncordon east --return`,
	})
	cmd.ValidArgsFunction = fleet.ClustersThat(f, func(c *clusterv1alpha1.Cluster) bool {
		return slices.ContainsFunc(e.unset, func(gone corev1.Taint) bool {
			return slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&gone) })
		})
	}, false)
	cmd.Flags().BoolVar(&returns, "return", false, "have what drains have moved off the clusters placed anew")
	cmd.Flags().DurationVar(&timeout, "timeout", returnTimeout, "how long to wait for that, with --return")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !returns && cmd.Flags().Changed("timeout") {
			return command.Usage(errors.New("--timeout is how long to wait for --return: without that nothing is waited for"))
		}
		if returns {
			back := draining.Return{Clock: clock.RealClock{}, Out: cmd.OutOrStdout(), ErrOut: cmd.ErrOrStderr(), Timeout: timeout}
			t.predict = func(ctx context.Context, hub client.Reader, taints map[string][]corev1.Taint) []string {
				if err := back.Before(ctx, hub, slices.Collect(maps.Keys(taints))); err != nil {
					return []string{"note: what returns by itself is not told: " + fleet.Describe(err).Error()}
				}
				return nil
			}
			t.then = func(cmd *cobra.Command, hub client.Client, names []string) error {
				back.Hub, back.Clusters, back.DryRun = hub, names, t.suffix() != ""
				return back.Run(cmd.Context())
			}
		}
		return run(cmd, args)
	}
	return cmd
}
