// Command flotilla is the command line of a fleet: joining clusters, looking at
// them, and kubectl itself. Installed as kubectl-flotilla it is a plugin.
//
// In go arguments and kubeconfigs; out come tables and one exit code: 0 done,
// 1 it did not work, 2 it was called wrongly, 130 the user ended it. It never
// serves anything.
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

// pluginCompletion is what kubectl calls to complete the words of its plugin
// kubectl-flotilla.
const pluginCompletion = "kubectl_complete-flotilla"

// version is set by the linker.
var version string

func main() {
	if args, ok := kubectlArguments(os.Args); ok {
		os.Exit(runKubectl(args))
	}
	// What libraries log says nothing to users; what matters comes as an error.
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends what does not heed the first.
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

// newCommand is the whole command line, under the name that it was called by.
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
	cmd.AddCommand(newKubectlCommand(), newCompletionCommand(), newExplainCommand(f), newInterpretCommand(f), newDemoCommand(), newValidateCommand(), newServeCommand())
	for _, commands := range packages {
		cmd.AddCommand(commands(f)...)
	}
	fleet.HeedElsewhere(f, cmd)
	completeNoFiles(cmd)
	group(cmd)
	cmd.SetUsageTemplate(usageTemplate(cmd, screen.Width(os.Stdout)))
	return cmd
}
