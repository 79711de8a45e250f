package request

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

func newSuspendCommand(f *fleet.Flags) *cobra.Command {
	return perKind(&cobra.Command{
		Use:   "suspend",
		Short: "Leave a source, a Kustomization or a Receiver alone until it is resumed",
		Long: `Leave a source, a Kustomization or a Receiver alone until it is resumed. What runs keeps
running, and changes in members are still put back.`,
		Example: `  flotilla suspend source git fleet
  flotilla suspend kustomization --all`,
	}, func(what *followed) *cobra.Command {
		o := &requestOptions{flags: f}
		cmd := o.several(what, "Leave "+what.plural+" alone until they are resumed", func(ctx context.Context, r *requester, objects []client.Object) error {
			for _, obj := range objects {
				if err := r.suspend(ctx, what, obj, true); err != nil {
					return err
				}
			}
			return nil
		})
		return cmd
	})
}
