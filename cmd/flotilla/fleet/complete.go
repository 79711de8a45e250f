package fleet

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/completion"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// CompletionTimeout is how long a request for completion may take, so that a user who presses a
// key does not wait long for a control plane that is away.
const CompletionTimeout = 3 * time.Second

// Complete registers the completion of AddTo's flags on root.
func (f *Flags) Complete(root *cobra.Command) {
	complete(root, "namespace", f.CompleteNames("namespaces"))
	complete(root, "karmada-context", f.completeContexts)
}

// CompleteNames offers the names of the objects of a kind on the control plane.
func (f *Flags) CompleteNames(kind string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return completion.CompGetResource(f.Server(Hub, CompletionTimeout), kind, word), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteClusters offers the names of clusters, also for the last one of a list separated by
// commas.
func (f *Flags) CompleteClusters(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	names, err := f.clusters(cmd.Context(), CompletionTimeout)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return offered(names, toComplete)
}

// ClustersThat offers the names of the clusters for which are returns true, each once. If one is true, it
// offers nothing after the first argument.
func ClustersThat(f *Flags, are func(*clusterv1alpha1.Cluster) bool, one bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
		defer cancel()
		hub, err := f.Client()
		if err != nil || one && len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var list clusterv1alpha1.ClusterList
		if err := hub.List(ctx, &list); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for i := range list.Items {
			if are(&list.Items[i]) && !slices.Contains(args, list.Items[i].Name) {
				names = append(names, list.Items[i].Name)
			}
		}
		return offered(names, toComplete)
	}
}

// offered returns the names that complete a word.
func offered(names []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	given, word := "", toComplete
	if i := strings.LastIndexByte(toComplete, ','); i >= 0 {
		given, word = toComplete[:i+1], toComplete[i+1:]
	}
	chosen := strings.Split(given, ",")
	var offers []string
	for _, name := range names {
		if strings.HasPrefix(name, word) && !slices.Contains(chosen, name) {
			offers = append(offers, given+name)
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}

func (f *Flags) completeContexts(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	config, err := f.Factory().ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := slices.Sorted(maps.Keys(config.Contexts))
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, word) }), cobra.ShellCompDirectiveNoFileComp
}

// complete registers the completion of a flag, which must be defined.
func complete(cmd *cobra.Command, flag string, fn cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, fn); err != nil {
		panic(err)
	}
}
