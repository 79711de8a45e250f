package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/internal/command"
)

// completeNoFiles prevents shells from offering files where a command takes names or nothing.
// Commands take files by flags. Completions that kubectl defines stay.
func completeNoFiles(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		completeNoFiles(child)
	}
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && !cmd.DisableFlagParsing {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
}

// newCompletionCommand returns the command that prints a shell's completion script. cobra's
// own command prints its help for an unknown shell, without an error.
func newCompletionCommand() *cobra.Command {
	var plain bool
	scripts := map[string]func(root *cobra.Command, out io.Writer) error{
		"bash": func(root *cobra.Command, out io.Writer) error { return root.GenBashCompletionV2(out, !plain) },
		"fish": func(root *cobra.Command, out io.Writer) error { return root.GenFishCompletion(out, !plain) },
		"powershell": func(root *cobra.Command, out io.Writer) error {
			if plain {
				return root.GenPowerShellCompletion(out)
			}
			return root.GenPowerShellCompletionWithDesc(out)
		},
		"zsh": func(root *cobra.Command, out io.Writer) error {
			if plain {
				return root.GenZshCompletionNoDesc(out)
			}
			return root.GenZshCompletion(out)
		},
	}
	shells := slices.Sorted(maps.Keys(scripts))
	cmd := &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print what teaches a shell to complete commands, kinds, names and clusters",
		Long: `Print what teaches a shell to complete commands, flags, kinds, names and clusters.
SHELL is bash, zsh, fish or powershell.

In bash the package bash-completion has to be installed; in zsh compinit has to have run.

kubectl completes the words of its plugin when kubectl_complete-flotilla, a link to
this program, is on the PATH.`,
		Example: `  source <(flotilla completion bash)
  flotilla completion zsh > "${fpath[1]}/_flotilla"
  flotilla completion fish > ~/.config/fish/completions/flotilla.fish`,
		Args:      command.Exactly("SHELL"),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			script := scripts[args[0]]
			if script == nil {
				return command.Usage(fmt.Errorf("there is no completion for %q: it is bash, zsh, fish or powershell", args[0]))
			}
			return script(cmd.Root(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&plain, "no-descriptions", false, "offer words without saying what they mean")
	return cmd
}
