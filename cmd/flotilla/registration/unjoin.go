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

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/join/outlook"
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
		ValidArgsFunction: fleet.ClustersThat(f, func(c *clusterv1alpha1.Cluster) bool { return c.Spec.SyncMode != clusterv1alpha1.Pull }, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name, opts.Namespace = args[0], member.namespace
			return unjoin(cmd, f, &member, opts)
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

// unjoin removes a cluster from the fleet, and reports what stays in it.
func unjoin(cmd *cobra.Command, f *fleet.Flags, member *memberFlags, opts join.UnjoinOptions) (err error) {
	if opts.Hub, err = f.Client(); err != nil {
		return fleet.Describe(err)
	}
	if opts.Opened, err = openedBy(f); err != nil {
		return fleet.Describe(err)
	}
	opts.Departure = &join.Departure{Name: opts.Name, Hub: opts.Hub, Report: reports(cmd.ErrOrStderr()), Answers: answers(f, opts.Name)}
	left := &leftovers{departure: opts.Departure}
	opts.Predicted = left.predict
	opts.Found = func() { opts.Departure.Report(asking(opts.Name, left.member)) }
	if member.kubeconfig == "" {
		opts.Witness, opts.Inside = witness(f, opts.Name), inside(f, opts.Name)
	} else {
		if left.member, opts.Member, err = member.connect(); err != nil {
			return err
		}
		if opts.HubID, err = join.HubIdentity(cmd.Context(), opts.Hub); err != nil {
			return fleet.Describe(err)
		}
		left.hub = opts.HubID
		if opts.Inside, err = left.inside(); err != nil {
			return err
		}
	}
	if opts.DryRun {
		opts.Progress = printSteps(cmd.OutOrStdout())
	}
	err = join.Unjoin(cmd.Context(), opts)
	switch {
	case errors.Is(err, join.ErrPull):
		return fmt.Errorf("the cluster %s is in pull mode: flotilla unregister %s takes it out, or unjoin --force if its agent is gone for good", opts.Name, opts.Name)
	case err != nil:
		return goesOn(cmd, opts.Departure, noCluster(cmd.Context(), opts.Hub, opts.Name, described(f, fleet.Meanwhile("cluster "+opts.Name, err))))
	case opts.DryRun:
		return nil
	}
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "cluster %s left\n", opts.Name); err != nil {
		return err
	}
	if err := left.warn(cmd); err != nil || opts.Member != nil {
		return err
	}
	_, err = io.WriteString(cmd.ErrOrStderr(), accountsStay(opts.Name, opts.Departure.Silent()))
	return err
}

// accountsStay returns the line about what is the control plane's own in a cluster that has left, without a way into it: the
// control plane takes its claim off one that answers. silent is how long the cluster has not answered; zero if it does.
func accountsStay(cluster string, silent time.Duration) string {
	what := "accounts stay in cluster " + cluster
	if silent > 0 {
		what = "accounts and its claim stay in cluster " + cluster + ", which did not answer"
	}
	return fmt.Sprintf("the control plane's %s: flotilla unjoin %s --cluster-kubeconfig FILE removes them, also now\n", what, cluster)
}

// witness returns a reader of a member through the control plane; nil if that fails.
func witness(f *fleet.Flags, cluster string) client.Reader {
	const timeout = 5 * time.Second // it may be gone for good
	cfg, err := f.Server(cluster, timeout).ToRESTConfig()
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

// inside returns an outlook's reader of a member through the control plane; nil if that fails.
func inside(f *fleet.Flags, cluster string) outlook.Inside {
	cfg, err := f.Server(cluster, 0).ToRESTConfig()
	if err != nil {
		return nil
	}
	member, err := outlook.Member(cluster, cfg)
	if err != nil {
		return nil
	}
	return member
}

// openedBy returns a function that reads at which revision the control plane began.
func openedBy(f *fleet.Flags) (func(context.Context) (int64, error), error) {
	cfg, err := f.Config()
	if err != nil {
		return nil, err
	}
	return setback.Opened(cfg), nil
}
