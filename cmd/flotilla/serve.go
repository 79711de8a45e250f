package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/internal/command"
)

// newServeCommand returns a hidden command that points users to flotillad, because texts use serve for short.
func newServeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "serve", Hidden: true, DisableFlagParsing: true, Short: "Say which program the control plane is",
		RunE: func(*cobra.Command, []string) error {
			return command.Usage(errors.New("the control plane is a program of its own: flotillad serve"))
		},
	}
}
