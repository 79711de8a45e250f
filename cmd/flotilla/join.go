package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/join"
)

func newJoinCommand() *cobra.Command {
	var hub hubFlags
	var member memberFlags
	var within time.Duration
	opts := join.Options{}
	cmd := &cobra.Command{
		Use:   "join NAME",
		Short: "Add a cluster to the fleet, in push mode",
		Long: `Add a cluster to the fleet, in push mode: the control plane reaches into it.

Join makes accounts for the control plane in the cluster, keeps their tokens as
Secrets in the control plane, and registers the cluster under NAME. It may be run
again after an interruption.`,
		Example: `  flotilla join east --cluster-kubeconfig ~/.kube/config --cluster-context east`,
		Args:    command.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			opts.Name, opts.Namespace = args[0], member.namespace
			if member.kubeconfig == "" {
				return command.Usage(errors.New("--cluster-kubeconfig is missing: name the file that leads to the member cluster"))
			}
			if opts.Hub, err = hub.connect(); err != nil {
				return err
			}
			if opts.MemberConfig, opts.Member, err = member.connect(); err != nil {
				return err
			}
			if opts.DryRun {
				opts.Progress = printSteps(cmd.OutOrStdout())
			}
			if err := join.Join(cmd.Context(), opts); err != nil {
				return err
			}
			if opts.DryRun {
				return nil
			}
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "cluster %s joined\n", opts.Name); err != nil || within == 0 {
				return err
			}
			if err := join.Ready(cmd.Context(), opts.Hub, opts.Name, within); err != nil {
				if cmd.Context().Err() != nil {
					return err // the user has enough of waiting
				}
				_, err = fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", err)
				return err
			}
			return nil
		},
	}
	flags := cmd.Flags()
	hub.addFlags(flags)
	member.addFlags(flags)
	flags.StringVar(&opts.Provider, "cluster-provider", "", "who runs the cluster, for policies to select by")
	flags.StringVar(&opts.Region, "cluster-region", "", "region of the cluster, for policies to select by")
	flags.StringSliceVar(&opts.Zones, "cluster-zones", nil, "zones of the cluster, for policies to select by")
	flags.BoolVar(&opts.DryRun, "dry-run", false, "print what would be done")
	flags.DurationVar(&within, "wait", 30*time.Second, "how long to wait until the control plane finds the cluster ready; 0 does not wait")
	return cmd
}

func newUnjoinCommand() *cobra.Command {
	var hub hubFlags
	var member memberFlags
	opts := join.UnjoinOptions{}
	cmd := &cobra.Command{
		Use:   "unjoin NAME",
		Short: "Take a cluster out of the fleet",
		Long: `Take a cluster out of the fleet: what the fleet runs there is removed, then the
registration. With --cluster-kubeconfig the accounts in the cluster go too.`,
		Example: `  flotilla unjoin east --cluster-kubeconfig ~/.kube/config --cluster-context east`,
		Args:    command.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			opts.Name, opts.Namespace = args[0], member.namespace
			if opts.Hub, err = hub.connect(); err != nil {
				return err
			}
			if member.kubeconfig != "" {
				if _, opts.Member, err = member.connect(); err != nil {
					return err
				}
			}
			if opts.DryRun {
				opts.Progress = printSteps(cmd.OutOrStdout())
			}
			err = join.Unjoin(cmd.Context(), opts)
			if apierrors.IsNotFound(err) {
				return fmt.Errorf("there is no cluster %s: flotilla kubectl get clusters lists them", opts.Name)
			}
			if err == nil && !opts.DryRun {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "cluster %s left\n", opts.Name)
			}
			return err
		},
	}
	flags := cmd.Flags()
	hub.addFlags(flags)
	member.addFlags(flags)
	flags.DurationVar(&opts.Wait, "wait", time.Minute, "how long the cluster may take to leave")
	flags.BoolVar(&opts.Force, "force", false, "let the cluster go although what runs in it could not be removed; it stays there")
	flags.BoolVar(&opts.DryRun, "dry-run", false, "print what would be done")
	return cmd
}

func printSteps(out io.Writer) func(join.Step) {
	return func(step join.Step) { _, _ = fmt.Fprintln(out, step) }
}

// joinQuietly joins a member whose kubeconfig has a context of its name, for
// the demo.
func joinQuietly(ctx context.Context, hubKubeconfig, name, memberKubeconfig string) error {
	hub, err := (&hubFlags{kubeconfig: hubKubeconfig}).connect()
	if err != nil {
		return err
	}
	cfg, member, err := (&memberFlags{kubeconfig: memberKubeconfig, context: name}).connect()
	if err != nil {
		return err
	}
	if err := join.Join(ctx, join.Options{Name: name, Hub: hub, Member: member, MemberConfig: cfg}); err != nil {
		return err
	}
	const patience = 30 * time.Second
	return join.Ready(ctx, hub, name, patience)
}
