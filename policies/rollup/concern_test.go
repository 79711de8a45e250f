package rollup_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestWhatAsksMostIsReportedFirst checks that, of several Kustomizations that are not
// well, the description is about the one that needs a person.
func TestWhatAsksMostIsReportedFirst(t *testing.T) {
	failed := func(name, reason string) rollup.Share {
		return rollup.Share{Name: name, State: rollup.StateFailure, Reason: reason, Description: reason + ": x"}
	}
	waits := func(name, reason string) rollup.Share {
		return rollup.Share{Name: name, State: rollup.StatePending, Reason: reason, Description: "waits"}
	}
	retired := failed("a", "PathNotFound")
	retired.Retired = true
	unchanged := func(s rollup.Share) rollup.Share {
		s.Unchanged = true
		return s
	}
	cases := map[string]struct {
		shares []rollup.Share
		want   string
	}{
		"what the commit retires follows from the one that may not remove it": {[]rollup.Share{retired, failed("z", "PruneBlocked")}, "2 failed; z: PruneBlocked: x"},
		"so, if nothing of that one is new with the commit": {[]rollup.Share{retired, unchanged(failed("z", "PruneBlocked"))},
			"1 failed, 1 unchanged, of them 1 not ready; z: PruneBlocked: x"},
		"a decision, before a fault":                                       {[]rollup.Share{failed("a", "BuildFailed"), failed("z", "SharedObject")}, "2 failed; z: SharedObject: x"},
		"a path that is wrong is a fault as others":                        {[]rollup.Share{failed("a", "HealthCheckFailed"), failed("z", "PathNotFound")}, "2 failed; z: PathNotFound: x"},
		"a fault, before what others may bring":                            {[]rollup.Share{failed("a", "NamespaceNotFound"), failed("z", "InvalidObject")}, "2 failed; z: InvalidObject: x"},
		"what others may bring, before what is not well in clusters":       {[]rollup.Share{failed("a", "HealthCheckFailed"), failed("z", "UnknownKind")}, "2 failed; z: UnknownKind: x"},
		"what the commit changes, before a decision of an earlier one":     {[]rollup.Share{unchanged(failed("a", "PruneBlocked")), failed("z", "BuildFailed")}, "1 failed, 1 unchanged, of them 1 not ready; z: BuildFailed: x"},
		"what rolls out, before what is tried again":                       {[]rollup.Share{waits("a", "ReconciliationFailed"), waits("z", "ReconciliationSucceeded")}, "2 roll out; z: waits"},
		"what is tried again, before what waits for another":               {[]rollup.Share{waits("a", "DependencyNotReady"), unchanged(waits("z", "PruneFailed"))}, "1 unchanged, of them 1 not ready, 1 rolls out; z: waits"},
		"what failed in clusters, before what may be well in a moment":     {[]rollup.Share{waits("a", "Progressing"), failed("z", "HealthCheckFailed")}, "1 failed, 1 rolls out; z: HealthCheckFailed: x"},
		"of the same, the first by name":                                   {[]rollup.Share{failed("b", "PruneBlocked"), failed("a", "PruneBlocked")}, "2 failed; a: PruneBlocked: x"},
		"what the commit retires is told where nothing else is in the way": {[]rollup.Share{retired, {Name: "z", State: rollup.StateSuccess}}, "1 failed, 1 ready; a: PathNotFound: x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for range 5 {
				rand.Shuffle(len(tc.shares), func(i, j int) { tc.shares[i], tc.shares[j] = tc.shares[j], tc.shares[i] })
				if diff := cmp.Diff(tc.want, rollup.Source(tc.shares).Description); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
