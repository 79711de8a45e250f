package telemetry

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// LogOptions say how much is logged and in what form. The zero value logs
// changes and faults as text.
type LogOptions struct {
	// Verbosity is 0 for changes and faults, 1 for decisions and why, 2 for
	// what was skipped and why, more for the libraries' own detail.
	Verbosity int
	// Format is "text" or "json"; empty means text.
	Format string
}

// AddFlags adds --v and --logging-format.
func (o *LogOptions) AddFlags(flags *pflag.FlagSet) {
	flags.IntVarP(&o.Verbosity, "v", "v", o.Verbosity, "how much to log: 0 changes and faults, 1 decisions, 2 what was skipped, 4 and more the libraries' detail")
	flags.StringVar(&o.Format, "logging-format", "text", "how to log: text or json")
}

// Start returns the logger that writes to out, and makes the Kubernetes
// libraries of this process log through it.
func (o *LogOptions) Start(out io.Writer) (logr.Logger, error) {
	level := &slog.HandlerOptions{Level: slog.Level(-o.Verbosity)}
	var handler slog.Handler
	switch o.Format {
	case "", "text":
		handler = slog.NewTextHandler(out, level)
	case "json":
		handler = slog.NewJSONHandler(out, level)
	default:
		return logr.Discard(), fmt.Errorf("--logging-format %q is unknown: use text or json", o.Format)
	}
	log := logr.FromSlogHandler(handler)
	klog.SetLoggerWithOptions(log, klog.ContextualLogger(true))
	ctrl.SetLogger(log)
	return log, nil
}
