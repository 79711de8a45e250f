package telemetry

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// LogOptions say how much is logged and in what form. The zero value logs
// changes and faults as text.
type LogOptions struct {
	// Verbosity is 0 for changes and faults, 1 for decisions and why, 2 for
	// what was skipped and why, more for the libraries' own detail.
	Verbosity int
	// Format is "text" or "json"; empty means text.
	Format string
	// Screen is where our own faults, and what somebody who looks on waits for, are written in
	// short besides; nil for nowhere.
	Screen io.Writer
}

// AddFlags adds --v and --logging-format.
func (o *LogOptions) AddFlags(flags *pflag.FlagSet) {
	flags.IntVarP(&o.Verbosity, "v", "v", o.Verbosity, "how much to log: 0 changes and faults, 1 decisions, 2 what was skipped, 4 and more the libraries' detail")
	flags.StringVar(&o.Format, "logging-format", "text", "how to log: text or json")
}

// Start returns the logger that writes to out, and makes the Kubernetes
// libraries of this process log through it.
func (o *LogOptions) Start(out io.Writer) (logr.Logger, error) {
	own, err := o.logger(out, slog.Level(-o.Verbosity), o.Screen)
	if err != nil {
		return own, err
	}
	// Kubernetes' servers and controllers log hundreds of lines at each start.
	libraries, err := o.logger(out, slog.Level(libraryVerbosity-o.Verbosity), nil)
	if err != nil {
		return own, err
	}
	klog.SetLoggerWithOptions(libraries, klog.ContextualLogger(true))
	ctrl.SetLogger(own)
	return own, nil
}

// libraryVerbosity is how much more verbose the log must be for the libraries
// to show more than faults.
const libraryVerbosity = 3

func (o *LogOptions) logger(out io.Writer, level slog.Level, to io.Writer) (logr.Logger, error) {
	opts := &slog.HandlerOptions{Level: level}
	var handler slog.Handler
	switch o.Format {
	case "", "text":
		handler = slog.NewTextHandler(out, opts)
	case "json":
		handler = slog.NewJSONHandler(visible{out}, opts)
	default:
		return logr.Discard(), fmt.Errorf("--logging-format %q is unknown: use text or json", o.Format)
	}
	if to != nil {
		handler = terse{Handler: handler, screen: &screen{out: to}}
	}
	return logr.FromSlogHandler(calm{handler}), nil
}

// visible writes JSON with the codes of characters that a terminal would obey, or that nobody would see: its encoder leaves most of them.
type visible struct{ out io.Writer }

// Write implements io.Writer.
func (v visible) Write(p []byte) (int, error) {
	if _, err := io.WriteString(v.out, excerpt.Visible(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
