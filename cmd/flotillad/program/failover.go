package program

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotillad/features"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/reconciler"
)

// Values of --failover.
const (
	failoverOn  = "on"
	failoverOff = "off"
)

// failoverOptions are the flags about moving workloads off failed clusters.
type failoverOptions struct {
	// whole is on or off. On enables all that failover needs, with defaults that fit together.
	whole     string
	tolerance time.Duration
	share     float64
	window    time.Duration

	// manager, noExecute, purge and rate have the same meaning as in Karmada.
	manager   bool
	noExecute bool
	purge     string
	rate      float64
	grace     time.Duration

	// judging configures how moved workloads are judged.
	judging failover.Judging

	flags *pflag.FlagSet
}

func (o *failoverOptions) addFlags(flags *pflag.FlagSet) {
	o.flags = flags
	flags.StringVar(&o.whole, "failover", failoverOff,
		"on moves what runs in a cluster that is lost for longer than --failover-tolerance: it switches the gate Failover and the flags about taints on, and makes the ClusterTaintPolicy failover where there is none")
	flags.DurationVar(&o.tolerance, "failover-tolerance", 5*time.Minute,
		"how long it is tolerated that a cluster is lost, where a policy does not say with clusterTolerations")
	flags.Float64Var(&o.share, "mass-failure-threshold", failover.DefaultShare,
		"nothing is moved off clusters that are lost together, where they are more than this share of the fleet, and two at least; 1 moves always")
	flags.DurationVar(&o.window, "mass-failure-window", failover.DefaultWindow, "clusters that are lost within this time of each other are lost together")
	flags.BoolVar(&o.manager, "enable-taint-manager", true, "heed taints of the effect NoExecute, if the gate Failover is on")
	flags.BoolVar(&o.noExecute, "enable-no-execute-taint-eviction", false, "move what runs in a cluster with a taint of the effect NoExecute that its policy does not tolerate")
	flags.StringVar(&o.purge, "no-execute-taint-eviction-purge-mode", string(policyv1alpha1.PurgeModeGracefully),
		"how a cluster is left where the policy does not say: Gracefully keeps the old copy until the new one is healthy, Directly has it gone before the new one starts")
	flags.Float64Var(&o.rate, "resource-eviction-rate", 0.5, "how many templates are moved off clusters in a second; as many as there are with --failover=on, where it is not set")
	flags.DurationVar(&o.judging.HealthTimeout, "moved-health-timeout", failover.DefaultHealthTimeout,
		"how long what was moved may take to be healthy where it was moved to; while much is not, less is moved in a second")
	flags.DurationVar(&o.judging.Recent, "moved-health-window", failover.DefaultRecent, "for how long a move counts for how fast others are moved")
	flags.DurationVar(&o.grace, "graceful-eviction-timeout", eviction.DefaultGrace, "how long the old copy is kept at most while the new one is not healthy; the last copy that may serve is kept for longer")
}

// validate returns an error for values that cannot work or contradict each other.
func (o *failoverOptions) validate(gates map[string]bool) error {
	switch {
	case o.whole != failoverOn && o.whole != failoverOff:
		return command.Usage(fmt.Errorf("--failover %q is neither on nor off", o.whole))
	case o.purge != string(policyv1alpha1.PurgeModeGracefully) && o.purge != string(policyv1alpha1.PurgeModeDirectly):
		return command.Usage(fmt.Errorf("--no-execute-taint-eviction-purge-mode %q is neither Gracefully nor Directly", o.purge))
	case o.tolerance < 0 || o.grace < 0 || o.rate < 0:
		return command.Usage(errors.New("--failover-tolerance, --graceful-eviction-timeout and --resource-eviction-rate must not be negative"))
	case o.share <= 0 || o.window <= 0:
		return command.Usage(errors.New("--mass-failure-threshold and --mass-failure-window must be more than 0"))
	case o.judging.HealthTimeout <= 0 || o.judging.Recent <= o.judging.HealthTimeout:
		return command.Usage(errors.New("--moved-health-timeout must be more than 0, and --moved-health-window more than that"))
	}
	if o.whole != failoverOn {
		return nil
	}
	for _, name := range []string{"enable-taint-manager", "enable-no-execute-taint-eviction"} {
		if on, err := o.flags.GetBool(name); err == nil && o.flags.Changed(name) && !on {
			return command.Usage(fmt.Errorf("--failover=on switches --%s on: leave it out", name))
		}
	}
	if on, set := gates[string(features.Failover)]; set && !on {
		return command.Usage(fmt.Errorf("--failover=on switches the gate %s on: leave it out of --feature-gates", features.Failover))
	}
	return nil
}

// on reports whether failover as a whole is on.
func (o *failoverOptions) on() bool { return o.whole == failoverOn }

// rules returns the rules that follow from the flags and the gates.
func (o *failoverOptions) rules(gates features.Gates) reconciler.Failover {
	out := reconciler.Failover{
		Rules: failover.Rules{
			Taints:    o.on() || gates.Failover && o.manager && o.noExecute,
			Tolerance: o.tolerance,
			Purge:     policyv1alpha1.PurgeMode(o.purge),
			State:     gates.StatefulFailover,
			Grace:     max(o.grace, time.Nanosecond), // 0 means "at once" in the flag
			Breaker:   failover.Breaker{Share: o.share, Window: o.window},
		},
		Lost: o.on(),
		Rate: o.rate, Judging: o.judging,
	}
	if !gates.GracefulEviction {
		out.Purge = policyv1alpha1.PurgeModeDirectly
	}
	switch {
	case o.on() && !o.flags.Changed("resource-eviction-rate"):
		out.Rate = 0
	case o.rate == 0:
		out.Rate = -1
	}
	return out
}

// withoutEffect returns the flags that were set and need another one, each with the reason.
func (o *failoverOptions) withoutEffect(gates features.Gates) []string {
	if o.noExecute && !o.on() && !gates.Failover {
		return []string{"--enable-no-execute-taint-eviction (it needs --feature-gates=Failover=true, or --failover=on)"}
	}
	return nil
}
