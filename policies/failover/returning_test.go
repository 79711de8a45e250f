package failover_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// TestReturning checks the texts that users see about a return.
func TestReturning(t *testing.T) {
	now := time.Date(2026, 1, 2, 6, 20, 44, 0, time.UTC)
	well := func(ago time.Duration) failover.Left {
		return failover.Left{Cluster: "west", Well: ptr.To(metav1.NewTime(now.Add(-ago)))}
	}
	cases := map[string]struct {
		left    []failover.Left
		seconds *int32
		moves   *failover.Moves
		want    []string
	}{
		"its cluster is well":             {left: []failover.Left{well(10 * time.Second)}, seconds: ptr.To[int32](30), want: []string{"to west at 06:21:04 UTC, when that has been well for 30s"}},
		"for long enough":                 {left: []failover.Left{well(time.Minute)}, seconds: ptr.To[int32](30), want: []string{"to west now, as that has been well for 30s"}},
		"for days to come":                {left: []failover.Left{well(44 * time.Second)}, seconds: ptr.To[int32](2 * 24 * 3600), want: []string{"to west at 2026-01-04 06:20:00 UTC, when that has been well for 2d"}},
		"its application was moved twice": {left: []failover.Left{well(40 * time.Second)}, seconds: ptr.To[int32](30), moves: &failover.Moves{Count: 2}, want: []string{"to west at 06:21:04 UTC, when that has been well for 60s"}},
		"never, however often it failed":  {left: []failover.Left{well(time.Minute)}, seconds: ptr.To[int32](math.MaxInt32), moves: &failover.Moves{Count: 9}, want: []string{"to west at 2125-12-09 06:19:44 UTC, when that has been well for 100y"}},
		"its clusters are not well":       {left: []failover.Left{{Cluster: "east"}, well(10 * time.Second)}, seconds: ptr.To[int32](30), want: []string{"to east once that has been well for 30s", "to west at 06:21:04 UTC, when that has been well for 30s"}},
		"its policy has nothing return":   {left: []failover.Left{well(time.Minute)}},
		"it was moved off nothing":        {seconds: ptr.To[int32](30)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{Failover: &policyv1alpha1.FailoverBehavior{FailBackSeconds: tc.seconds}}
			if diff := cmp.Diff(tc.want, failover.Returning(tc.left, spec, tc.moves, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
