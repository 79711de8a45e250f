// Command flotilla is the command line of a fleet: joining clusters, looking at
// them, and kubectl itself. Installed as kubectl-flotilla it is a plugin.
//
// In go arguments and kubeconfigs; out come tables and one exit code: 0 done,
// 1 it did not work, 2 it was called wrongly. It never serves anything.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/telemetry"
)

// version is set by the linker.
var version string

func main() {
	if args, ok := kubectlArguments(os.Args); ok {
		os.Exit(runKubectl(args))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command.Run(ctx, newCommand(filepath.Base(os.Args[0])))
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
	}
	cmd.AddCommand(newKubectlCommand(), newExplainCommand(), newJoinCommand(), newUnjoinCommand(), newDemoCommand(), newValidateCommand())
	return cmd
}
