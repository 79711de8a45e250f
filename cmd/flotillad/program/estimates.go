package program

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/reconciler"
	"github.com/flotilla-io/flotilla/reconciler/descheduler"
)

// Values of --estimates.
const (
	estimatesOfNodes    = "nodes"
	estimatesLeast      = "least"
	estimatesOfClusters = "reported"
)

// estimateOptions are the flags about how the room in a cluster is estimated, and about
// replicas that find no node there.
type estimateOptions struct {
	by           string
	descheduling reconciler.Descheduling
	remote       remoteOptions
	// plugins are a program's own.
	plugins []nodes.Plugin
}

func (o *estimateOptions) addFlags(flags *pflag.FlagSet) {
	o.remote.addFlags(flags)
	flags.StringVar(&o.by, "estimates", estimatesOfNodes,
		"how it is counted what fits in a cluster: nodes counts on its nodes and by its quotas, where these are seen or its agent tells of them, and by what it reports elsewhere; least counts the least of both, as Karmada does; reported counts by what it reports alone")
	flags.DurationVar(&o.descheduling.Interval, "descheduling-interval", descheduler.DefaultInterval, "how often replicas are looked for that find no node in their cluster, to run them in another")
	flags.DurationVar(&o.descheduling.Threshold, "unschedulable-threshold", descheduler.DefaultThreshold, "how long a replica must have waited for a node for that")
	flags.BoolVar(&o.descheduling.DryRun, "descheduling-dry-run", false, "tell by Events what would be moved for that, and move nothing")
}

// withDescheduler returns the controllers to run. With failover that includes the
// descheduler, unless it is excluded by name or only named controllers run.
func withDescheduler(controllers []string, failover bool) []string {
	if !failover || !slices.Contains(controllers, "*") || slices.Contains(controllers, "-"+reconciler.Descheduler) {
		return controllers
	}
	return append(slices.Clone(controllers), reconciler.Descheduler)
}

// validate returns an error for values that cannot work.
func (o *estimateOptions) validate() error {
	if o.descheduling.Interval <= 0 || o.descheduling.Threshold <= 0 {
		return command.Usage(errors.New("--descheduling-interval and --unschedulable-threshold must be more than 0"))
	}
	return o.remote.validate()
}

// estimates returns the options for the loops.
func (o *estimateOptions) estimates() (reconciler.Estimates, error) {
	switch o.by {
	case estimatesOfNodes:
		return reconciler.Estimates{Plugins: o.plugins}, nil
	case estimatesLeast:
		return reconciler.Estimates{Least: true, Plugins: o.plugins}, nil
	case estimatesOfClusters:
		return reconciler.Estimates{Reported: true}, nil
	default:
		return reconciler.Estimates{}, command.Usage(fmt.Errorf("--estimates %q is unknown: use %s, %s or %s", o.by, estimatesOfNodes, estimatesLeast, estimatesOfClusters))
	}
}
