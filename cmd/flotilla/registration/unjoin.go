package registration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/setback"
)

func newUnjoin(f *fleet.Flags) *cobra.Command {
	var member memberFlags
	opts := join.UnjoinOptions{}
	cmd := &cobra.Command{
		Use:   "unjoin NAME",
		Short: "Take a cluster out of the fleet that is in push mode",
		Long: `Take a cluster out of the fleet: what the fleet runs there is removed, then the
registration. With --cluster-kubeconfig the accounts in the cluster go too.`,
		Example:           `  flotilla unjoin east --cluster-kubeconfig ~/.kube/config --cluster-context east`,
		Args:              command.Exactly("NAME"),
		ValidArgsFunction: f.CompleteClusters,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			opts.Name, opts.Namespace = args[0], member.namespace
			if opts.Hub, err = f.Client(); err != nil {
				return fleet.Describe(err)
			}
			if opts.Opened, err = openedBy(f); err != nil {
				return fleet.Describe(err)
			}
			if member.kubeconfig != "" {
				if _, opts.Member, err = member.connect(); err != nil {
					return err
				}
			}
			if opts.Member == nil {
				opts.Witness = witness(f, opts.Name)
			}
			if opts.DryRun {
				opts.Progress = printSteps(cmd.OutOrStdout())
			}
			opts.Left = stillLeft(cmd.ErrOrStderr(), opts.Name)
			err = join.Unjoin(cmd.Context(), opts)
			switch {
			case errors.Is(err, join.ErrPull):
				return fmt.Errorf("the cluster %s is in pull mode: flotilla unregister %s takes it out, or unjoin --force if its agent is gone for good", opts.Name, opts.Name)
			case err != nil:
				return noCluster(opts.Name, described(f, err))
			case opts.DryRun:
				return nil
			}
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "cluster %s left\n", opts.Name); err != nil || opts.Member != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "the control plane's accounts stay in the cluster, and its claim if it could not be reached: flotilla unjoin %s --cluster-kubeconfig FILE removes them, also now\n", opts.Name)
			return err
		},
	}
	flags := cmd.Flags()
	member.addTo(flags)
	member.complete(cmd)
	flags.DurationVar(&opts.Wait, "wait", time.Minute, "how long the cluster may take to leave")
	flags.BoolVar(&opts.Force, "force", false, "let the cluster go although what runs in it could not be removed; it stays there")
	flags.BoolVar(&opts.DryRun, "dry-run", false, "print what would be done")
	return cmd
}

// stillLeft says how far a cluster is that leaves, when that is news.
func stillLeft(out io.Writer, cluster string) func(works int) {
	told := ""
	return func(works int) {
		line := fmt.Sprintf("waiting for cluster %s: what %d Works had it run is still to be removed there", cluster, works)
		if works == 0 {
			line = fmt.Sprintf("waiting for cluster %s: all that ran there is removed", cluster)
		}
		if line != told {
			told = line
			_, _ = fmt.Fprintln(out, line)
		}
	}
}

// witness reads a member through the control plane; nil if that is of no use.
func witness(f *fleet.Flags, cluster string) client.Reader {
	const patience = 5 * time.Second // it may be gone for good
	cfg, err := f.Server(cluster, patience).ToRESTConfig()
	if err != nil {
		return nil
	}
	cfg.WarningHandler = rest.NoWarnings{}
	member, err := client.New(cfg, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil
	}
	return member
}

// openedBy asks the control plane at which revision it began.
func openedBy(f *fleet.Flags) (func(context.Context) (int64, error), error) {
	cfg, err := f.Config()
	if err != nil {
		return nil, err
	}
	return setback.Opened(cfg), nil
}
