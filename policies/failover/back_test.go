package failover_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// TestBackTo checks when a template returns to a cluster that it was moved away
// from.
func TestBackTo(t *testing.T) {
	const noExecute, noSchedule = corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule
	west := func(ago time.Duration) failover.Left {
		return failover.Left{Cluster: "west", Well: ptr.To(metav1.NewTime(noon.Add(-ago)))}
	}
	unwell := []failover.Left{{Cluster: "west"}}
	of := func(taints ...corev1.Taint) fleet {
		return fleet{member("west", "", long, taints...), member("east", "", long)}
	}
	cases := map[string]struct {
		left        []failover.Left
		fleet       fleet
		seconds     *int32
		tolerations []corev1.Toleration
		due         failover.Due
		moves       failover.Moves
		want        failover.Back
	}{
		"its policy does not say so":     {left: []failover.Left{west(time.Hour)}, fleet: of()},
		"it was moved off nothing":       {fleet: of(), seconds: ptr.To[int32](30)},
		"it is well as of now":           {left: unwell, fleet: of(), seconds: ptr.To[int32](30), want: failover.Back{Left: []failover.Left{west(0)}, Next: noon.Add(30 * time.Second)}},
		"it is well for a while":         {left: []failover.Left{west(10 * time.Second)}, fleet: of(), seconds: ptr.To[int32](30), want: failover.Back{Left: []failover.Left{west(10 * time.Second)}, Next: noon.Add(20 * time.Second)}},
		"it is well for long enough":     {left: []failover.Left{west(30 * time.Second)}, fleet: of(), seconds: ptr.To[int32](30), want: failover.Back{Left: []failover.Left{west(30 * time.Second)}, Stable: []string{"west"}}},
		"at once, where no time is set":  {left: unwell, fleet: of(), seconds: ptr.To[int32](-1), want: failover.Back{Left: []failover.Left{west(0)}, Stable: []string{"west"}}},
		"it failed there before":         {left: []failover.Left{west(30 * time.Second)}, fleet: of(), seconds: ptr.To[int32](30), moves: failover.Moves{Count: 3}, want: failover.Back{Left: []failover.Left{west(30 * time.Second)}, Next: noon.Add(90 * time.Second)}},
		"never, however often it failed": {left: []failover.Left{west(time.Hour)}, fleet: of(), seconds: ptr.To[int32](math.MaxInt32), moves: failover.Moves{Count: 9}, want: failover.Back{Left: []failover.Left{west(time.Hour)}, Next: noon.Add(100*365*24*time.Hour - time.Hour)}},
		"it has left the fleet":          {left: []failover.Left{west(time.Hour)}, fleet: fleet{member("east", "", long)}, seconds: ptr.To[int32](30)},
		"it is being deleted":            {left: []failover.Left{west(time.Hour)}, fleet: fleet{leaving(member("west", "", long))}, seconds: ptr.To[int32](30), want: failover.Back{Left: unwell}},
		"it is not ready":                {left: []failover.Left{west(time.Hour)}, fleet: fleet{member("west", clusterv1alpha1.ClusterNotReachableReason, long)}, seconds: ptr.To[int32](30), want: failover.Back{Left: unwell}},
		"it must not run there":          {left: []failover.Left{west(time.Hour)}, fleet: of(), due: failover.Due{"west": {Why: "a taint"}}, seconds: ptr.To[int32](30), want: failover.Back{Left: unwell}},
		"a taint evicts":                 {left: []failover.Left{west(time.Hour)}, fleet: of(taint("a", noExecute, time.Hour)), seconds: ptr.To[int32](30), want: failover.Back{Left: unwell}},
		"a taint is tolerated":           {left: []failover.Left{west(time.Hour)}, fleet: of(taint("a", noExecute, time.Hour)), tolerations: []corev1.Toleration{exists("a")}, seconds: ptr.To[int32](30), want: failover.Back{Left: []failover.Left{west(time.Hour)}, Stable: []string{"west"}}},
		"a taint is tolerated for a day": {left: []failover.Left{west(time.Hour)}, fleet: of(taint("a", noExecute, time.Hour)), tolerations: []corev1.Toleration{exists("a", 86400)}, seconds: ptr.To[int32](30), want: failover.Back{Left: unwell}},
		"a taint keeps away":             {left: []failover.Left{west(time.Hour)}, fleet: of(taint("a", noSchedule, time.Hour)), seconds: ptr.To[int32](30), want: failover.Back{Left: unwell}},
		"it does not keep this one away": {left: []failover.Left{west(time.Hour)}, fleet: of(taint("a", noSchedule, time.Hour)), tolerations: []corev1.Toleration{exists("b"), exists("a")}, seconds: ptr.To[int32](30), want: failover.Back{Left: []failover.Left{west(time.Hour)}, Stable: []string{"west"}}},
		"a taint that only warns":        {left: []failover.Left{west(time.Hour)}, fleet: of(taint("a", corev1.TaintEffectPreferNoSchedule, time.Hour)), seconds: ptr.To[int32](30), want: failover.Back{Left: []failover.Left{west(time.Hour)}, Stable: []string{"west"}}},
		"of two the sooner comes next": {left: []failover.Left{west(10 * time.Second), {Cluster: "east", Well: ptr.To(metav1.NewTime(noon.Add(-20 * time.Second)))}}, fleet: of(), seconds: ptr.To[int32](30),
			want: failover.Back{Left: []failover.Left{west(10 * time.Second), {Cluster: "east", Well: ptr.To(metav1.NewTime(noon.Add(-20 * time.Second)))}}, Next: noon.Add(10 * time.Second)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{Failover: &policyv1alpha1.FailoverBehavior{FailBackSeconds: tc.seconds}}
			if tc.tolerations != nil {
				spec.Placement = &policyv1alpha1.Placement{ClusterTolerations: tc.tolerations}
			}
			got := failover.BackTo(tc.left, tc.fleet, spec, tc.due, tc.moves, noon)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBoth checks how what is due for a cluster's reasons and for the
// application's is joined.
func TestBoth(t *testing.T) {
	taint, app := failover.Cause{Why: "a taint"}, failover.Cause{Why: "an application", Application: true}
	soon, late := noon.Add(time.Minute), noon.Add(time.Hour)
	cases := map[string]struct {
		a, b         failover.Due
		nextA, nextB time.Time
		want         map[string]string
		next         time.Time
	}{
		"nothing":           {want: map[string]string{}},
		"only the second":   {b: failover.Due{"west": app}, nextB: late, want: map[string]string{"west": "an application"}, next: late},
		"only the first":    {a: failover.Due{"west": taint}, nextA: late, want: map[string]string{"west": "a taint"}, next: late},
		"both":              {a: failover.Due{"west": taint}, b: failover.Due{"east": app}, nextA: late, nextB: soon, want: map[string]string{"west": "a taint", "east": "an application"}, next: soon},
		"both of a cluster": {a: failover.Due{"west": taint}, b: failover.Due{"west": app}, nextA: soon, nextB: late, want: map[string]string{"west": "a taint"}, next: soon},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			due, next := failover.Both(tc.a, tc.b, tc.nextA, tc.nextB)
			if diff := cmp.Diff(tc.want, due.Reasons()); diff != "" || !next.Equal(tc.next) {
				t.Errorf("next %s, want %s (-want +got):\n%s", next, tc.next, diff)
			}
		})
	}
}

// TestToleratesDrain checks from when on a drain counts.
func TestToleratesDrain(t *testing.T) {
	drained := failover.DrainTaint()
	drained.TimeAdded = ptr.To(metav1.NewTime(noon.Add(-time.Minute)))
	cases := map[string]struct {
		taints      []corev1.Taint
		tolerations []corev1.Toleration
		drains      bool
		until       time.Time
		ends        bool
	}{
		"no drain":             {taints: []corev1.Taint{taint("a", corev1.TaintEffectNoExecute, time.Minute)}},
		"a drain":              {taints: []corev1.Taint{drained}, drains: true, until: noon.Add(-time.Minute), ends: true},
		"tolerated":            {taints: []corev1.Taint{drained}, tolerations: []corev1.Toleration{exists(drained.Key)}, drains: true},
		"tolerated for a time": {taints: []corev1.Taint{drained}, tolerations: []corev1.Toleration{exists(drained.Key, 600)}, drains: true, until: noon.Add(9 * time.Minute), ends: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := member("west", "", long, tc.taints...)
			until, ends := failover.ToleratesDrain(c, tc.tolerations, noon)
			if failover.Drains(c) != tc.drains || !until.Equal(tc.until) || ends != tc.ends {
				t.Errorf("drains %t, until %s, ends %t", failover.Drains(c), until, ends)
			}
		})
	}
}

// TestLeftEqual checks when two records of a cluster are the same.
func TestLeftEqual(t *testing.T) {
	at := func(when time.Time) *metav1.Time { return ptr.To(metav1.NewTime(when)) }
	west := failover.Left{Cluster: "west", Well: at(noon)}
	for name, tc := range map[string]struct {
		other failover.Left
		want  bool
	}{
		"the same":          {other: failover.Left{Cluster: "west", Well: at(noon.In(time.FixedZone("x", 3600)))}, want: true},
		"another cluster":   {other: failover.Left{Cluster: "east", Well: at(noon)}},
		"another time":      {other: failover.Left{Cluster: "west", Well: at(long)}},
		"not well any more": {other: failover.Left{Cluster: "west"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := west.Equal(tc.other); got != tc.want {
				t.Errorf("equal: %t", got)
			}
		})
	}
}

// TestOutcomesAreCounted checks that moves are counted by their outcome.
func TestOutcomesAreCounted(t *testing.T) {
	var got failover.Outcomes
	for _, f := range []failover.MoveState{failover.MoveHealthy, failover.MoveIll, failover.MoveIll, failover.MoveWaiting} {
		got.Add(f)
	}
	if diff := cmp.Diff(failover.Outcomes{Healthy: 1, Ill: 2, Waiting: 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
