package program

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/telemetry"
	"github.com/flotilla-io/flotilla/internal/timerslack"
)

// Run runs the program by its arguments until it is stopped by SIGINT or
// SIGTERM, and returns its exit code.
func Run(version string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)         // a second signal ends the process at once
	_ = timerslack.Set(timerslack.Usual) // if it fails, an idle process only uses more CPU
	return command.Run(ctx, New(version))
}

// New returns the program's command.
func New(version string) *cobra.Command {
	o := &options{version: version}
	logs := telemetry.LogOptions{}
	cmd := &cobra.Command{
		Use:   "flotilla-agent --karmada-kubeconfig HUB --cluster-name NAME",
		Short: "Keep one cluster in line with its hub, from beside the cluster",
		Long: `Keep one cluster in line with its hub, from beside the cluster: fetch what it is to
run, make it so, put back what is changed there, and report. While the hub is away
the agent goes on with what it knows, which it keeps on disk; when the hub is back
it catches up with the latest state. Nothing is removed because the hub is away.`,
		Version: telemetry.BuildVersion(version).String(),
		Args:    command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			log, err := logs.Start(cmd.ErrOrStderr())
			if err != nil {
				return command.Usage(err)
			}
			defer thrift()()
			return o.run(cmd.Context(), log)
		},
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(command.Version("Agent", telemetry.BuildVersion(version)))
	o.addFlags(cmd.Flags())
	logs.AddFlags(cmd.Flags())
	return cmd
}
