package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/internal/command"
)

// elsewhere is a command that there is not, and what there is instead.
type elsewhere struct{ name, instead string }

// newElsewhereCommands returns hidden commands for what is not done here: each says what there is instead. Texts use
// serve for short, users of karmadactl look for the next ones, and of kubectl for its verbs.
func newElsewhereCommands() []*cobra.Command {
	all := []elsewhere{
		{"serve", "the control plane is a program of its own: flotillad serve"},
		{"init", "there is nothing to install: flotillad serve --data-dir DIR runs a control plane, and is all of it"},
		{"deinit", "there is nothing to take out: flotillad serve ends by Ctrl-C or SIGTERM, and its --data-dir is all that it leaves"},
		{"addons", "there are no addons: estimator and descheduler are parts of flotillad, and search and metrics across clusters are not there yet"},
	}
	for _, verb := range []string{"autoscale", "auth", "cluster-info", "config", "cp", "debug", "expose", "proxy", "replace", "rollout", "run", "scale", "set", "wait"} {
		all = append(all, elsewhere{verb, verb + " is kubectl's: flotilla kubectl " + verb})
	}
	var out []*cobra.Command
	for _, of := range all {
		out = append(out, &cobra.Command{
			Use: of.name, Hidden: true, DisableFlagParsing: true, Short: "Say what there is instead",
			RunE: func(*cobra.Command, []string) error { return command.Usage(errors.New(of.instead)) },
		})
	}
	return out
}
