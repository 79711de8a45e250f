package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"
)

// kubectlArguments returns the arguments for kubectl itself if the call is `flotilla kubectl …`, or
// a shell's completion of such a call.
func kubectlArguments(args []string) ([]string, bool) {
	words := args[1:]
	if filepath.Base(args[0]) == pluginCompletion {
		words = append([]string{cobra.ShellCompRequestCmd}, words...)
	}
	kubectl := []string{filepath.Join(filepath.Dir(args[0]), "kubectl")}
	if len(words) > 2 && (words[0] == cobra.ShellCompRequestCmd || words[0] == cobra.ShellCompNoDescRequestCmd) {
		kubectl, words = append(kubectl, words[0]), words[1:]
	}
	if len(words) == 0 || words[0] != "kubectl" {
		return nil, false
	}
	return append(kubectl, words[1:]...), true
}

// runKubectl runs kubectl in this process and returns its exit code.
func runKubectl(args []string) int {
	// kubectl reads the process's arguments to find its plugins and to complete them, so they
	// are replaced completely.
	os.Args = args
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	cmd := kubectl.NewDefaultKubectlCommandWithArgs(kubectl.KubectlOptions{
		PluginHandler: kubectl.NewDefaultPluginHandler(plugin.ValidPluginFilenamePrefixes),
		Arguments:     args,
		ConfigFlags:   genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().WithDiscoveryBurst(300).WithDiscoveryQPS(50),
		IOStreams:     streams,
	})
	return cli.Run(cmd)
}

// newKubectlCommand returns the command for help and completion, and for calls with flags before
// it. main passes all other calls to kubectl before flags are parsed.
func newKubectlCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl [command]",
		Short:              "kubectl itself: every command and flag of it",
		DisableFlagParsing: true,
		Run: func(_ *cobra.Command, args []string) {
			os.Exit(runKubectl(append([]string{"kubectl"}, args...)))
		},
	}
}
