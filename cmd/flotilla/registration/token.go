package registration

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
)

func newToken(f *fleet.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and delete the tokens by which clusters register",
		Long: `Make, list and delete bootstrap tokens. By a token a cluster gets to know the
control plane, and the control plane the cluster: see flotilla register.`,
		Example: `  flotilla token create --print-register-command
  flotilla token list
  flotilla token delete abcdef`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.Usage(fmt.Errorf("there is no command token %s: there are create, delete and list", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTokenCreate(f), newTokenList(f), newTokenDelete(f))
	return cmd
}

// hubOf returns a client for the control plane, or an error if f leads to another server: a token is a Secret,
// which every cluster would accept.
func hubOf(ctx context.Context, f *fleet.Flags) (client.Client, error) {
	hub, err := f.Client()
	if err != nil {
		return nil, fleet.Describe(err)
	}
	return hub, fleet.Elsewhere(ctx, f)
}
