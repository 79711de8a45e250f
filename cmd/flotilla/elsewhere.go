package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/internal/command"
)

// newElsewhereCommands returns hidden commands for what is not done here: each says what there is instead. Texts use
// serve for short, and users of karmadactl look for the others.
func newElsewhereCommands() []*cobra.Command {
	var out []*cobra.Command
	for _, of := range []struct{ name, instead string }{
		{"serve", "the control plane is a program of its own: flotillad serve"},
		{"init", "there is nothing to install: flotillad serve --data-dir DIR runs a control plane, and is all of it"},
		{"deinit", "there is nothing to take out: flotillad serve ends by Ctrl-C or SIGTERM, and its --data-dir is all that it leaves"},
		{"addons", "there are no addons: estimator and descheduler are parts of flotillad, and search and metrics across clusters are not there yet"},
	} {
		out = append(out, &cobra.Command{
			Use: of.name, Hidden: true, DisableFlagParsing: true, Short: "Say what there is instead",
			RunE: func(*cobra.Command, []string) error { return command.Usage(errors.New(of.instead)) },
		})
	}
	return out
}
