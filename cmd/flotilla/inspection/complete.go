package inspection

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

// completeObjects offers kinds and then names from the first named cluster, or else from the
// control plane.
func completeObjects(f *fleet.Flags, scope *fleet.Scope) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		return completion.ResourceTypeAndNameCompletionFunc(server(f, scope))(cmd, args, word)
	}
}

// completePods offers pods, and objects with pods as KIND/NAME, of the named cluster. If none is
// named, it offers those of all clusters, which is where the commands for pods look.
func completePods(f *fleet.Flags, scope *fleet.Scope) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(scope.Named()) > 0 {
			return completion.PodResourceNameCompletionFunc(server(f, scope))(cmd, args, word)
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), fleet.CompletionTimeout)
		defer cancel()
		clusters, err := scope.Members(ctx, f)
		if err != nil || len(args) > 0 || scope.Hub() {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var offers []string
		for _, answer := range fleet.Each(ctx, clusters, func(_ context.Context, cluster string) ([]string, error) {
			words, _ := completion.PodResourceNameCompletionFunc(f.Server(cluster, fleet.CompletionTimeout))(cmd, args, word)
			return words, nil
		}) {
			offers = append(offers, answer.Value...)
		}
		slices.Sort(offers)
		offers = slices.Compact(offers)
		if slices.ContainsFunc(offers, func(offer string) bool { return !strings.HasSuffix(offer, "/") }) {
			return offers, cobra.ShellCompDirectiveNoFileComp
		}
		return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// completeNames offers the names of one kind.
func completeNames(f *fleet.Flags, scope *fleet.Scope, kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 || len(scope.Named()) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completion.CompGetResource(server(f, scope), kind, word), cobra.ShellCompDirectiveNoFileComp
	}
}

// server returns the factory for the server that is asked for completions.
func server(f *fleet.Flags, scope *fleet.Scope) cmdutil.Factory {
	name := fleet.Hub
	if named := scope.Named(); len(named) > 0 {
		name = strings.TrimSpace(named[0])
	}
	return f.Server(name, fleet.CompletionTimeout)
}
