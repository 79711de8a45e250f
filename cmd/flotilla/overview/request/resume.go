package request

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

func newResumeCommand(f *fleet.Flags, now clock.Clock) *cobra.Command {
	resume := perKind(&cobra.Command{
		Use:   "resume",
		Short: "Follow a suspended source, Kustomization or Receiver again, or go on after a restored backup",
		Long: `Follow a suspended source, Kustomization or Receiver again, and wait for what comes of
it. With --all, --wait waits. Resume hub has a control plane go on that was set back to
an older backup.`,
		Example: `  flotilla resume source git fleet
  flotilla resume kustomization --all --wait
  flotilla resume hub --dry-run`,
	}, func(what *followed) *cobra.Command {
		o := &requestOptions{flags: f, clock: now}
		cmd := o.several(what, "Follow suspended "+what.plural+" again", func(ctx context.Context, r *requester, objects []client.Object) error {
			for _, obj := range objects {
				if err := r.suspend(ctx, what, obj, false); err != nil {
					return err
				}
			}
			if o.all && !o.wait {
				return nil
			}
			for _, obj := range objects {
				if err := r.wait(ctx, what, obj, ""); err != nil {
					return err
				}
			}
			return nil
		})
		cmd.Flags().DurationVar(&o.timeout, "timeout", defaultTimeout, "how long to wait for each")
		cmd.Flags().BoolVar(&o.wait, "wait", false, "with --all, too, wait until they are followed")
		return cmd
	})
	resume.AddCommand(newResumeHubCommand(f, now))
	return resume
}
