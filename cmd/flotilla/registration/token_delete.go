package registration

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/registration/token"
)

func newTokenDelete(f *fleet.Flags) *cobra.Command {
	return &cobra.Command{
		Use:   "delete TOKEN...",
		Short: "Delete tokens by which clusters register",
		Long:  `Delete bootstrap tokens, by their public part or whole. Clusters that have registered stay members.`,

		ValidArgsFunction: completeTokens(f),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Exactly("TOKEN")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			hub, err := hubOf(cmd.Context(), f)
			if err != nil {
				return err
			}
			for _, arg := range args {
				id, err := token.Delete(cmd.Context(), hub, arg)
				switch {
				case errors.Is(err, token.ErrInvalid):
					return command.Usage(fmt.Errorf("%q is no token: %w; flotilla token list lists them", arg, err))
				case apierrors.IsNotFound(err):
					return fmt.Errorf("there is no token %s: flotilla token list lists them", id)
				case err != nil:
					return fleet.Describe(err)
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "bootstrap token %q deleted\n", id); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
