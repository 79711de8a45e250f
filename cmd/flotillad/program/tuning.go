package program

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/reconciler"
	"github.com/flotilla-io/flotilla/reconciler/cluster"
)

// mostWorkers is the largest number of workers that a flag may set.
const mostWorkers = 10_000

// tuningOptions are the flags about intervals, thresholds and numbers of workers.
type tuningOptions struct {
	silence cluster.Silence
	loops   reconciler.Tuning
	// models is true if nodes are counted by the clusters' resource models.
	models bool
	// clusterWide is the number of workers for bindings without a namespace. They are the
	// same workers as for the other bindings.
	clusterWide int
	estimates   estimateOptions
}

func (o *tuningOptions) addFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.silence.Grace, "cluster-monitor-grace-period", cluster.DefaultGrace,
		"how long a cluster in pull mode may be silent before it counts as not known to be ready")
	flags.DurationVar(&o.silence.Startup, "cluster-startup-grace-period", cluster.DefaultStartup,
		"the same for a cluster that has never been heard of")
	flags.DurationVar(&o.loops.Period, "cluster-status-update-frequency", 10*time.Second, "how often the health of a cluster in push mode is asked for")
	flags.DurationVar(&o.loops.SuccessThreshold, "cluster-success-threshold", 30*time.Second, "how long a cluster must be well before it counts as ready again")
	flags.DurationVar(&o.loops.FailureThreshold, "cluster-failure-threshold", 30*time.Second, "how long a cluster must fail before it counts as not ready")
	flags.BoolVar(&o.models, "enable-cluster-resource-modeling", true, "count the nodes of clusters by their resource models")
	o.estimates.addFlags(flags)
	for _, w := range o.workers() {
		flags.IntVar(w.number, w.flag, 0, "how many "+w.of+" are worked on side by side; 0 is the loop's own number")
	}
}

// workers returns the flags for numbers of workers.
func (o *tuningOptions) workers() []struct {
	flag, of string
	number   *int
} {
	w := &o.loops.Workers
	return []struct {
		flag, of string
		number   *int
	}{
		{"concurrent-cluster-syncs", "clusters", &w.Clusters},
		{"concurrent-work-syncs", "Works of one cluster", &w.Works},
		{"concurrent-resourcebinding-syncs", "bindings, of both scopes,", &w.Bindings},
		{"concurrent-clusterresourcebinding-syncs", "bindings, of both scopes,", &o.clusterWide},
		{"concurrent-namespace-syncs", "namespaces", &w.Namespaces},
		{"concurrent-resource-template-syncs", "templates", &w.Templates},
		{"concurrent-dependent-resource-syncs", "bindings that take others along", &w.Dependents},
	}
}

// validate returns an error for values that cannot work, and completes the rest.
func (o *tuningOptions) validate() error {
	if err := o.estimates.validate(); err != nil {
		return err
	}
	if o.silence.Grace < time.Second || o.silence.Startup < time.Second {
		return command.Usage(errors.New("--cluster-monitor-grace-period and --cluster-startup-grace-period must be at least 1s: agents report every few seconds"))
	}
	if o.loops.Period < time.Second {
		return command.Usage(errors.New("--cluster-status-update-frequency must be at least 1s"))
	}
	if o.loops.SuccessThreshold < 0 || o.loops.FailureThreshold < 0 {
		return command.Usage(errors.New("--cluster-success-threshold and --cluster-failure-threshold must not be negative"))
	}
	// 0 means "at once" in the flags and "the default" in the loop.
	o.loops.SuccessThreshold = max(o.loops.SuccessThreshold, time.Nanosecond)
	o.loops.FailureThreshold = max(o.loops.FailureThreshold, time.Nanosecond)
	for _, w := range o.workers() {
		if *w.number < 0 || *w.number > mostWorkers {
			return command.Usage(fmt.Errorf("--%s %d must be between 1 and %d, or 0", w.flag, *w.number, mostWorkers))
		}
	}
	o.loops.NoModels = !o.models
	o.loops.Workers.Bindings = max(o.loops.Workers.Bindings, o.clusterWide)
	return nil
}
