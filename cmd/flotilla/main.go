// Command flotilla is the command line of a fleet: commands to join clusters and to inspect
// them, and kubectl itself. Installed as kubectl-flotilla it is a plugin.
//
// In go arguments and kubeconfigs; out come tables and one exit code: 0 for success, 1 for a
// failure, 2 for wrong usage, 130 if the user interrupted it. It never serves anything.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/screen"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/telemetry"
)

// pluginCompletion is the name under which kubectl calls its plugin kubectl-flotilla for
// completions.
const pluginCompletion = "kubectl_complete-flotilla"

// version is set by the linker.
var version string

func main() {
	if args, ok := kubectlArguments(os.Args); ok {
		os.Exit(runKubectl(args))
	}
	// Logs of libraries do not help users; what matters is returned as an error.
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	calledAs := filepath.Base(os.Args[0])
	cmd := newCommand(calledAs)
	if calledAs == pluginCompletion {
		cmd.SetArgs(append([]string{cobra.ShellCompRequestCmd}, os.Args[1:]...))
	}
	code := command.Run(ctx, cmd)
	stop()
	os.Exit(code)
}

// newCommand returns the root command, under the name by which it was called.
func newCommand(calledAs string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "flotilla",
		Short: "Run applications on a fleet of Kubernetes clusters, from Git",
		Long: `Run applications on a fleet of Kubernetes clusters, from Git.

Commands talk to the control plane named by --kubeconfig, or $KUBECONFIG, or
~/.kube/config. To see everything at work on this machine: flotilla demo.`,
		Version: telemetry.BuildVersion(version).String(),
	}
	if strings.HasPrefix(calledAs, "kubectl-") {
		cmd.Use = calledAs
		cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: strings.Replace(calledAs, "-", " ", 1)}
	}
	f := &fleet.Flags{}
	cmd.PersistentPreRun = func(cmd *cobra.Command, _ []string) { f.Interrupt(cmd.Context()) }
	f.AddTo(cmd.PersistentFlags())
	f.AddConnectionTo(cmd.PersistentFlags())
	f.Complete(cmd)
	cmd.AddCommand(newKubectlCommand(), newCompletionCommand(), newExplainCommand(f), newInterpretCommand(f), newDemoCommand(), newValidateCommand())
	cmd.AddCommand(newElsewhereCommands()...)
	for _, commands := range packages {
		cmd.AddCommand(commands(f)...)
	}
	fleet.HeedElsewhere(f, cmd)
	completeNoFiles(cmd)
	group(cmd)
	cmd.SetUsageTemplate(usageTemplate(cmd, screen.Width(os.Stdout)))
	return cmd
}
