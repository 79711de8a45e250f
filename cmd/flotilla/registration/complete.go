package registration

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/registration/token"
)

// completeTokens offers the public parts of tokens.
func completeTokens(f *fleet.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), fleet.CompletionTimeout)
		defer cancel()
		hub, err := f.Client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := token.List(ctx, hub)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var offers []string
		for _, info := range all {
			if strings.HasPrefix(info.ID, word) && !slices.Contains(args, info.ID) {
				offers = append(offers, cobra.CompletionWithDesc(info.ID, plain(info.Description)))
			}
		}
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
}

// complete offers the contexts in the member's kubeconfig.
func (m *memberFlags) complete(cmd *cobra.Command) {
	completeFlag(cmd, "cluster-context", func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = m.kubeconfig
		config, err := rules.Load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := slices.Sorted(maps.Keys(config.Contexts))
		return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, word) }), cobra.ShellCompDirectiveNoFileComp
	})
}

// completeApplyAs offers the values of --apply-as.
func completeApplyAs(cmd *cobra.Command) {
	completeFlag(cmd, "apply-as", cobra.FixedCompletions([]string{clusterv1alpha1.ApplyAsAuthor, clusterv1alpha1.ApplyAsHub}, cobra.ShellCompDirectiveNoFileComp))
}

// completeFlag registers the completion of a flag, which must be defined.
func completeFlag(cmd *cobra.Command, flag string, fn cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, fn); err != nil {
		panic(err)
	}
}
