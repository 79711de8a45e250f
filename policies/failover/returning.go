package failover

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// stabilizationOf returns how long a cluster has to be healthy until a template
// returns to it; false where templates never return.
func stabilizationOf(spec *workv1alpha2.ResourceBindingSpec, moves Moves) (time.Duration, bool) {
	if spec.Failover == nil || spec.Failover.FailBackSeconds == nil {
		return 0, false
	}
	return times(time.Duration(max(*spec.Failover.FailBackSeconds, 0))*time.Second, 1<<min(max(moves.Count-1, 0), mostDoubled)), true
}

// Returning returns a text for each cluster in left about when the template
// returns to it: "to west at 06:21:04 UTC, when that has been well for 30s". It
// is empty where the policy has no failBackSeconds. Nil moves are those of an
// application that was never moved.
func Returning(left []Left, spec *workv1alpha2.ResourceBindingSpec, moves *Moves, now time.Time) []string {
	if moves == nil {
		moves = &Moves{}
	}
	stabilization, returns := stabilizationOf(spec, *moves)
	if !returns {
		return nil
	}
	long := duration.HumanDuration(stabilization)
	var out []string
	for _, l := range left {
		switch {
		case l.Well == nil:
			out = append(out, "to "+l.Cluster+" once that has been well for "+long)
		case l.Well.Add(stabilization).After(now):
			out = append(out, "to "+l.Cluster+" at "+clockTime(l.Well.Add(stabilization), now)+", when that has been well for "+long)
		default:
			out = append(out, "to "+l.Cluster+" now, as that has been well for "+long)
		}
	}
	return out
}

// clockTime returns the time of day, with the date where it is more than a day
// away.
func clockTime(at, now time.Time) string {
	if at.Sub(now).Abs() < 24*time.Hour {
		return at.UTC().Format(time.TimeOnly + " UTC")
	}
	return at.UTC().Format(time.DateTime + " UTC")
}
