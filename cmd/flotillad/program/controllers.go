package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/telemetry"
)

// newControllersCommand returns the command that runs the loops without a control plane.
func newControllersCommand(own Options) *cobra.Command {
	var kubeconfig string
	loops := loopOptions{}
	loops.addresses.metrics, loops.addresses.health = "127.0.0.1:8080", "127.0.0.1:10357"
	loops.take(own)
	logs := telemetry.LogOptions{}
	cmd := &cobra.Command{
		Use:   "controllers --kubeconfig FILE",
		Short: "Run the loops alone, against any API server that serves the kinds",
		Long: `Run the loops alone, against any API server that serves the kinds: the one of
"flotillad serve --controllers=-*", or Karmada's, which is waited for. Several
replicas elect one that works.`,
		Args: command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kubeconfig == "" {
				return command.Usage(errors.New("--kubeconfig is missing: name the file that leads to the control plane"))
			}
			if err := loops.validate(nil); err != nil {
				return err
			}
			logger, err := logs.Start(cmd.ErrOrStderr())
			if err != nil {
				return command.Usage(err)
			}
			loops.warn(cmd.ErrOrStderr())
			cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("read --kubeconfig: %w", err)
			}
			loops.log = logger
			err = hub.Await(logr.NewContext(cmd.Context(), logger), cfg)
			if cmd.Context().Err() != nil {
				return nil // it was stopped before there was a control plane
			}
			if err != nil {
				return err
			}
			return loops.run(cmd.Context(), cfg)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&kubeconfig, "kubeconfig", "", "file that leads to the control plane (required)")
	flags.StringVar(&loops.dataDir, "data-dir", cacheDir(), "folder that keeps what sources fetch")
	flags.BoolVar(&loops.leaderElect, "leader-elect", true, "work only while holding the lease that replicas compete for")
	logs.AddFlags(flags)
	loops.addFlags(flags) // last: it adds Karmada's other flags
	return cmd
}

// cacheDir returns the folder for data that can be fetched again.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "flotilla")
}
