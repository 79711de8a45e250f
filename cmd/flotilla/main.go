// Command flotilla is the command line of a fleet: joining clusters, looking at
// them, and kubectl itself. Installed as kubectl-flotilla it is a plugin.
//
// In go arguments and kubeconfigs; out come tables and one exit code: 0 done,
// 1 it did not work, 2 it was called wrongly. It never serves anything.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/internal/telemetry"
)

// version is set by the linker.
var version string

// errUsage marks a call that was wrong before anything was tried.
var errUsage = errors.New("wrong usage")

func main() {
	if args, ok := kubectlArguments(os.Args); ok {
		os.Exit(runKubectl(args))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, newCommand()))
}

// run executes the command and prints what went wrong as one line.
func run(ctx context.Context, cmd *cobra.Command) int {
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return 130
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "error: %s\n", strings.TrimSpace(strings.TrimSuffix(err.Error(), ": "+errUsage.Error())))
	if errors.Is(err, errUsage) || isCobraUsage(err) {
		return 2
	}
	return 1
}

func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "flotilla",
		Short: "Run applications on a fleet of Kubernetes clusters, from Git",
		Long: `Run applications on a fleet of Kubernetes clusters, from Git.

Commands talk to the control plane named by --kubeconfig, or $KUBECONFIG, or
~/.kube/config. To see everything at work on this machine: flotilla demo.`,
		Version:       telemetry.BuildVersion(version).String(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") {
		cmd.Use = "kubectl-flotilla"
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; %s --help lists the flags: %w", err, cmd.CommandPath(), errUsage)
	})
	cmd.AddCommand(newKubectlCommand(), newJoinCommand(), newUnjoinCommand(), newDemoCommand())
	return cmd
}

// isCobraUsage recognizes cobra's own complaints about commands and arguments,
// which carry no type.
func isCobraUsage(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "unknown command") || strings.HasPrefix(text, "accepts ") ||
		strings.HasPrefix(text, "required flag") || strings.HasPrefix(text, "requires ")
}
