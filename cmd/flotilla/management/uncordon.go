package management

import (
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

func newUncordon(f *fleet.Flags) *cobra.Command {
	return cordonCommand(f, edit{unset: []corev1.Taint{cordoned}, done: "uncordoned", already: "already uncordoned"}, &cobra.Command{
		Use:   "uncordon NAME...",
		Short: "Let clusters take new work again",
		Long:  `Let clusters take new work again, after cordon.`,
		Example: `  flotilla uncordon east west
  flotilla uncordon -l region=eu`,
	})
}
