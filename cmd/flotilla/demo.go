package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/cmd/flotilla/demo"
	"github.com/flotilla-io/flotilla/cmd/flotilla/registration"
	"github.com/flotilla-io/flotilla/cmd/flotilla/tint"
	"github.com/flotilla-io/flotilla/internal/command"
)

func newDemoCommand() *cobra.Command {
	var dir string
	var exit bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run an example fleet of three clusters on this machine",
		Long: `Run an example fleet on this machine: a control plane, three clusters and a Git
server. It commits an application, shows how it reaches every cluster, and then
stays for you to look around. Ctrl-C stops and removes everything.`,
		Example: `  flotilla demo`,
		Args:    command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			flotillad, err := besides("flotillad")
			if err != nil {
				return err
			}
			if dir == "" {
				// Credentials are kept there, so the name must not be one that somebody else
				// could have guessed and created.
				base, err := os.MkdirTemp("", "flotilla-demo-")
				if err != nil {
					return fmt.Errorf("make a folder for the fleet: %w", err)
				}
				defer os.RemoveAll(base)
				dir = filepath.Join(base, "fleet")
			}
			return demo.Run(cmd.Context(), demo.Options{
				Flotillad: flotillad,
				Dir:       dir,
				Exit:      exit,
				Out:       cmd.OutOrStdout(),
				Terminal:  tint.Codes(cmd.OutOrStdout()),
				Clock:     clock.RealClock{},
				Join:      registration.Join,
			})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "where to keep the fleet; default is a new temporary folder. It is removed at the end if it was not there before")
	cmd.Flags().BoolVar(&exit, "exit", false, "end when all is ready, with exit code 0, or 1 if it does not get ready")
	return cmd
}

// besides returns the path of another program in the folder of this one.
func besides(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find out where this program is: %w", err)
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%s is not there: build it beside %s (make build)", path, self)
	}
	return path, nil
}
