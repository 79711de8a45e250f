package overview

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/request"
	"github.com/flotilla-io/flotilla/internal/command"
)

// Commands returns the commands of this package.
func Commands(f *fleet.Flags) []*cobra.Command {
	return commands(f, clock.RealClock{})
}

func commands(f *fleet.Flags, now clock.WithTicker) []*cobra.Command {
	return append([]*cobra.Command{
		newStatusCommand(f, now), newTraceCommand(f), newTreeCommand(f), newEventsCommand(f, now),
	}, request.Commands(f, now)...)
}

// output is the value of -o.
type output struct{ format string }

// Values of -o.
const (
	asText = ""
	asWide = "wide"
	asJSON = "json"
	asYAML = "yaml"
)

func (o *output) addTo(cmd *cobra.Command, allowed ...string) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "how to print: "+strings.Join(allowed, ", ")+"; default is text")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
	check := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := command.Output(o.format, allowed...); err != nil || check == nil {
			return err
		}
		return check(cmd, args)
	}
}

// structured writes a value if -o requests a format for programs.
func (o *output) structured(w io.Writer, value any) (done bool, err error) {
	var content []byte
	switch o.format {
	case asJSON:
		content, err = json.MarshalIndent(value, "", "  ")
		content = append(content, '\n')
	case asYAML:
		content, err = yaml.Marshal(value)
	default:
		return false, nil
	}
	if err == nil {
		_, err = w.Write(content)
	}
	return true, err
}

// object parses KIND/NAME or KIND NAME.
func object(args []string) (kind, name string, err error) {
	switch {
	case len(args) == 1 && strings.Count(args[0], "/") == 1:
		kind, name, _ = strings.Cut(args[0], "/")
	case len(args) == 2 && !strings.Contains(args[0]+args[1], "/"):
		kind, name = args[0], args[1]
	}
	if kind == "" || name == "" {
		return "", "", command.Usage(errors.New("one object is needed: KIND/NAME or KIND NAME, such as deployment/web"))
	}
	return kind, name, nil
}
