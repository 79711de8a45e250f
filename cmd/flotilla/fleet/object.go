package fleet

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/completion"
)

// CompleteObject offers kinds and names for one object on the control plane: KIND/NAME or
// KIND NAME.
func (f *Flags) CompleteObject() cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 1 || len(args) == 1 && strings.Contains(args[0], "/") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completion.SpecifiedResourceTypeAndNameNoRepeatCompletionFunc(f.Server(Hub, CompletionTimeout), nil)(cmd, args, word)
	}
}

// CompleteReference offers the same for a flag, as KIND/NAME alone.
func (f *Flags) CompleteReference() cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		offers, directive := f.CompleteObject()(cmd, nil, word)
		if strings.Contains(word, "/") {
			return offers, directive
		}
		for i := range offers {
			offers[i] += "/"
		}
		return offers, directive | cobra.ShellCompDirectiveNoSpace
	}
}
