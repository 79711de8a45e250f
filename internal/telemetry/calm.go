package telemetry

import (
	"context"
	"log/slog"
	"slices"
)

// detail is the level of what a healthy program does at every start and stop.
const detail = slog.Level(-1)

// routine is what libraries log of each controller, each time, as a change. Ours log
// themselves when they run, and when they do not.
var routine = map[string]bool{
	"Starting EventSource": true,
	"Starting Controller":  true,
	"Starting workers":     true,
	"Shutdown signal received, waiting for all workers to finish": true,
	"All workers finished": true,
	"Stopping and waiting for non leader election runnables": true,
	"Stopping and waiting for leader election runnables":     true,
	"Stopping and waiting for warmup runnables":              true,
	"Stopping and waiting for caches":                        true,
	"Stopping and waiting for webhooks":                      true,
	"Stopping and waiting for HTTP servers":                  true,
	"Wait completed, proceeding to shutdown the manager":     true,
}

// passing are faults that Kubernetes' own components log at a healthy start, of every
// start after a kill, or of what is no fault, by what each record says.
var passing = []struct{ message, err string }{
	// The garbage collector looks once a second whether it knows all kinds, and takes longer
	// for the first time. Its workers do not wait for that. A kind that cannot be watched is
	// reported by whoever watches it.
	{err: "timed out waiting for dependency graph builder sync during GC sync"},
	{message: "Unable to sync caches"},
	// The API server takes its own address out of the list before it enters it.
	{message: "Found stale data, removed previous endpoints on kubernetes service, apiserver didn't exit successfully previously"},
	// Its namespace is made a moment later, and it is tried again.
	{message: "Error while syncing ConfigMap", err: `namespaces "kube-system" not found`},
	// Whoever made a request has given it up, and knows that: loops do, with a run that a later revision replaces.
	{message: "Post-timeout activity"},
	{message: "Timeout or abort while handling"},
	{err: "apiserver was unable to write a JSON response: http: Handler timeout"},
}

// calm is a handler that takes what is routine for detail. Other faults go through.
type calm struct{ slog.Handler }

// Handle implements slog.Handler.
func (c calm) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelInfo && routine[r.Message] || r.Level >= slog.LevelError && isPassing(r) {
		if !c.Enabled(ctx, detail) {
			return nil
		}
		r.Level = detail
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (c calm) WithAttrs(attrs []slog.Attr) slog.Handler { return calm{c.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (c calm) WithGroup(name string) slog.Handler { return calm{c.Handler.WithGroup(name)} }

func isPassing(r slog.Record) bool {
	errText := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "err" {
			errText = a.Value.String()
		}
		return errText == ""
	})
	return slices.ContainsFunc(passing, func(p struct{ message, err string }) bool {
		return (p.message == "" || p.message == r.Message) && (p.err == "" || p.err == errText)
	})
}
