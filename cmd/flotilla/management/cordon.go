package management

import (
	"errors"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
)

// cordoned is the taint of a cluster that takes no new work.
var cordoned = corev1.Taint{Key: clusterv1alpha1.TaintClusterUnscheduler, Effect: corev1.TaintEffectNoSchedule}

func newCordon(f *fleet.Flags) *cobra.Command {
	return cordonCommand(&target{fleet: f}, edit{set: []corev1.Taint{cordoned}, overwrite: true, done: "cordoned", already: "already cordoned"}, &cobra.Command{
		Use:   "cordon NAME...",
		Short: "Keep new work away from clusters",
		Long: `Keep new work away from clusters. What runs there goes on running.

Clusters get the taint cluster.karmada.io/unschedulable:NoSchedule.`,
		Example: `  flotilla cordon east
  flotilla cordon -l region=eu --dry-run=server`,
	})
}

func cordonCommand(t *target, e edit, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.ValidArgsFunction = t.fleet.CompleteClusters
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && t.selector == "" {
			return command.Usage(errors.New("NAME is missing: name clusters, or select them with --selector"))
		}
		return t.run(cmd, args, e)
	}
	t.addFlags(cmd)
	return cmd
}
