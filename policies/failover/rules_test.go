package failover_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/failover"
)

var (
	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	long = noon.Add(-time.Hour) // ago
)

type fleet []*clusterv1alpha1.Cluster

func (f fleet) Each(do func(*clusterv1alpha1.Cluster) bool) {
	for _, c := range f {
		if !do(c) {
			return
		}
	}
}

// member returns a cluster that has been in the state of a reason since a time;
// ready where the reason is empty.
func member(name, reason string, since time.Time, taints ...corev1.Taint) *clusterv1alpha1.Cluster {
	ready := metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.NewTime(since)}
	if reason == "" {
		ready.Status, ready.Reason = metav1.ConditionTrue, clusterv1alpha1.ClusterReadyReason
	}
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{Taints: taints}}
	c.Status.Conditions = []metav1.Condition{ready}
	return c
}

func taint(key string, effect corev1.TaintEffect, ago time.Duration) corev1.Taint {
	return corev1.Taint{Key: key, Effect: effect, TimeAdded: ptr.To(metav1.NewTime(noon.Add(-ago)))}
}

func exists(key string, seconds ...int64) corev1.Toleration {
	t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists}
	if len(seconds) > 0 {
		t.TolerationSeconds = &seconds[0]
	}
	return t
}

const unreachable = clusterv1alpha1.TaintClusterUnreachable

// TestAway checks from which clusters nothing can be removed now.
func TestAway(t *testing.T) {
	unheard := member("a", clusterv1alpha1.ClusterNotReachableReason, noon)
	unheard.Status.Conditions = nil
	for name, tc := range map[string]struct {
		cluster *clusterv1alpha1.Cluster
		want    bool
	}{
		"it is well":                          {member("a", "", noon), false},
		"nobody has looked at it yet":         {unheard, false},
		"it does not answer":                  {member("a", clusterv1alpha1.ClusterNotReachableReason, noon), true},
		"it answers, and not well":            {member("a", clusterv1alpha1.ClusterNotReadyReason, noon), true},
		"it answers again":                    {member("a", clusterv1alpha1.ClusterAnswersAgainReason, noon), true},
		"its agent is not heard of":           {member("a", clusterv1alpha1.ClusterStatusUnknownReason, noon), true},
		"it refuses the credentials":          {member("a", clusterv1alpha1.ClusterCredentialsRefusedReason, noon), true},
		"it is well, and cannot be looked at": {member("a", clusterv1alpha1.ClusterStatusCollectionFailedReason, noon), false},
		"it leaves the fleet":                 {leaving(member("a", clusterv1alpha1.ClusterNotReachableReason, noon)), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := failover.Away(tc.cluster); got != tc.want {
				t.Errorf("away: %t", got)
			}
		})
	}
}

// TestOf checks when a template must no longer run in a cluster.
func TestOf(t *testing.T) {
	const noExecute, noSchedule = corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule
	gone := clusterv1alpha1.ClusterNotReachableReason
	cases := map[string]struct {
		cluster     *clusterv1alpha1.Cluster
		tolerations []corev1.Toleration
		rules       failover.Rules
		// due is whether it must not now, and in how long until it must not.
		due bool
		in  time.Duration
	}{
		"no taint":                                 {cluster: member("a", "", long)},
		"one that only keeps others out":           {cluster: member("a", "", long, taint("k", noSchedule, time.Hour))},
		"one that is not tolerated":                {cluster: member("a", "", long, taint("k", noExecute, 0)), due: true},
		"one that is tolerated for ever":           {cluster: member("a", "", long, taint("k", noExecute, time.Hour)), tolerations: []corev1.Toleration{exists("k")}},
		"any is tolerated":                         {cluster: member("a", "", long, taint("k", noExecute, time.Hour)), tolerations: []corev1.Toleration{exists("")}},
		"another key is tolerated":                 {cluster: member("a", "", long, taint("k", noExecute, 0)), tolerations: []corev1.Toleration{exists("j")}, due: true},
		"another effect is tolerated":              {cluster: member("a", "", long, taint("k", noExecute, 0)), tolerations: []corev1.Toleration{{Key: "k", Operator: "Exists", Effect: noSchedule}}, due: true},
		"another value is tolerated":               {cluster: member("a", "", long, taint("k", noExecute, 0)), tolerations: []corev1.Toleration{{Key: "k", Value: "v"}}, due: true},
		"tolerated for a while":                    {cluster: member("a", "", long, taint("k", noExecute, 10*time.Second)), tolerations: []corev1.Toleration{exists("k", 30)}, in: 20 * time.Second},
		"the while is over":                        {cluster: member("a", "", long, taint("k", noExecute, 30*time.Second)), tolerations: []corev1.Toleration{exists("k", 30)}, due: true},
		"the shortest of several counts":           {cluster: member("a", "", long, taint("k", noExecute, 0)), tolerations: []corev1.Toleration{exists("k"), exists("k", 90), exists("k", 40)}, in: 40 * time.Second},
		"a negative while":                         {cluster: member("a", "", long, taint("k", noExecute, 0)), tolerations: []corev1.Toleration{exists("k", -5)}, due: true},
		"a while without end":                      {cluster: member("a", "", long, taint("k", noExecute, 0)), tolerations: []corev1.Toleration{exists("k", 1<<62)}},
		"the earliest of several taints":           {cluster: member("a", "", long, taint("k", noExecute, 0), taint("j", noExecute, 0)), tolerations: []corev1.Toleration{exists("k", 50), exists("j", 20)}, in: 20 * time.Second},
		"a taint of the future counts from now":    {cluster: member("a", "", long, taint("k", noExecute, -time.Minute)), due: true},
		"and its while begins now":                 {cluster: member("a", "", long, taint("k", noExecute, -time.Hour)), tolerations: []corev1.Toleration{exists("k", 30)}, in: 30 * time.Second},
		"so it does where the cluster is lost":     {cluster: member("a", gone, noon, taint(unreachable, noExecute, -time.Hour)), in: 20 * time.Second},
		"a taint without a time":                   {cluster: member("a", "", long, corev1.Taint{Key: "k", Effect: noExecute}), tolerations: []corev1.Toleration{exists("k", 30)}, in: 30 * time.Second},
		"a loss is tolerated by default":           {cluster: member("a", gone, noon, taint(unreachable, noExecute, time.Minute)), rules: failover.Rules{Tolerance: 5 * time.Minute}, in: 4 * time.Minute},
		"a loss beyond that":                       {cluster: member("a", gone, noon, taint(unreachable, noExecute, 6*time.Minute)), rules: failover.Rules{Tolerance: 5 * time.Minute}, due: true},
		"what the placement says goes before":      {cluster: member("a", gone, noon, taint(unreachable, noExecute, 0)), rules: failover.Rules{Tolerance: time.Minute}, tolerations: []corev1.Toleration{exists(unreachable, 600)}, in: 10 * time.Minute},
		"just lost: others may be, too":            {cluster: member("a", gone, noon, taint(unreachable, noExecute, time.Second)), in: 19 * time.Second},
		"one lost with it is noticed late":         {cluster: member("a", gone, noon, taint(unreachable, noExecute, 6*time.Second)), rules: failover.Rules{Tolerance: time.Second}, in: 14 * time.Second},
		"probes are made more often":               {cluster: member("a", gone, noon, taint(unreachable, noExecute, 6*time.Second)), rules: failover.Rules{Breaker: failover.Breaker{Skew: 11 * time.Second}}, in: 5 * time.Second},
		"the agent is not heard of":                {cluster: member("a", clusterv1alpha1.ClusterStatusUnknownReason, noon, taint(unreachable, noExecute, 20*time.Second)), due: true},
		"its credentials are refused":              {cluster: member("a", clusterv1alpha1.ClusterCredentialsRefusedReason, noon, taint("k", noExecute, 0))},
		"another cluster answers":                  {cluster: member("a", clusterv1alpha1.ClusterIdentityMismatchReason, noon, taint("k", noExecute, 0))},
		"its state cannot be read":                 {cluster: member("a", clusterv1alpha1.ClusterStatusCollectionFailedReason, noon, taint("k", noExecute, 0))},
		"it is back, and its taint is about to go": {cluster: member("a", "", noon.Add(-2*time.Second), taint("k", noExecute, time.Hour)), in: 8 * time.Second},
		"it is back by a clock that was set back":  {cluster: member("a", "", noon.Add(time.Hour), taint("k", noExecute, 0)), due: true},
		"it answers again":                         {cluster: member("a", clusterv1alpha1.ClusterAnswersAgainReason, noon, taint("k", noExecute, 0))},
		"lost, and not enough was heard yet":       {cluster: member("a", gone, noon, taint("k", noExecute, 0)), rules: failover.Rules{HeardBy: noon.Add(time.Minute)}, in: time.Minute},
		"well, so that nothing need be heard":      {cluster: member("a", "", long, taint("k", noExecute, 0)), rules: failover.Rules{HeardBy: noon.Add(time.Minute)}, due: true},
		"it leaves the fleet, which is not this":   {cluster: leaving(member("a", "", long, taint("k", noExecute, 0)))},
		"the hub was set back and waits":           {cluster: held(member("a", "", long, taint("k", noExecute, 0)))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.rules.Taints = true
			due, next := tc.rules.Of(fleet{tc.cluster}, tc.tolerations, noon)
			if _, is := due["a"]; is != tc.due {
				t.Errorf("due = %v, want %v", due, tc.due)
			}
			var in time.Duration
			if !next.IsZero() {
				in = next.Sub(noon)
			}
			if in != tc.in {
				t.Errorf("in %s, want %s", in, tc.in)
			}
			tc.rules.Taints = false
			if due, next := tc.rules.Of(fleet{tc.cluster}, tc.tolerations, noon); due != nil || !next.IsZero() {
				t.Errorf("although nothing is to move: %v, %v", due, next)
			}
		})
	}
}

func leaving(c *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
	c.DeletionTimestamp = &metav1.Time{Time: noon}
	return c
}

func held(c *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
	c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionHeld, Status: metav1.ConditionTrue})
	return c
}

// TestLosses checks when the loss of many clusters is suspected to be the control
// plane's own fault.
func TestLosses(t *testing.T) {
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	gone := func(name string, minutes int) *clusterv1alpha1.Cluster {
		return member(name, clusterv1alpha1.ClusterNotReachableReason, at(minutes), taint(unreachable, corev1.TaintEffectNoExecute, time.Hour))
	}
	well := func(name string) *clusterv1alpha1.Cluster { return member(name, "", noon) }
	heldSince := func(c *clusterv1alpha1.Cluster, minutes int) *clusterv1alpha1.Cluster {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionMassFailureSuspected, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(minutes))})
		return c
	}
	held := func(c *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster { return heldSince(c, 1) }
	confirm := func(c *clusterv1alpha1.Cluster, minutes int) *clusterv1alpha1.Cluster {
		c.Annotations = map[string]string{clusterv1alpha1.ConfirmLostAnnotation: at(minutes).Format(time.RFC3339)}
		return c
	}
	cases := map[string]struct {
		fleet   fleet
		breaker failover.Breaker
		want    string        // the clusters that are suspected
		back    int           // how many of those that count are back
		until   time.Duration // from two hours after the first loss; zero for as long as they are lost
	}{
		"none is lost":                     {fleet: fleet{well("a"), well("b")}},
		"one of two":                       {fleet: fleet{gone("a", 0), well("b")}},
		"one of one":                       {fleet: fleet{gone("a", 0)}},
		"both of two":                      {fleet: fleet{gone("a", 0), gone("b", 1)}, want: "a b"},
		"two of three":                     {fleet: fleet{gone("a", 0), gone("b", 1), well("c")}, want: "a b"},
		"a third":                          {fleet: fleet{gone("a", 0), gone("b", 0), well("c"), well("d"), well("e"), well("f")}},
		"half":                             {fleet: fleet{gone("a", 0), gone("b", 0), gone("c", 0), well("d"), well("e"), well("f")}, want: "a b c"},
		"one after the other":              {fleet: fleet{gone("a", 0), gone("b", 6), well("c")}},
		"one long ago, two at once":        {fleet: fleet{gone("a", 0), gone("b", 60), gone("c", 61), well("d")}, want: "b c"},
		"one of them is confirmed":         {fleet: fleet{confirm(gone("a", 0), 2), gone("b", 1), well("c")}, want: "b"},
		"confirmed before, and lost again": {fleet: fleet{confirm(gone("a", 0), -9), gone("b", 1), well("c")}, want: "a b"},
		"one is back a moment ago":         {fleet: fleet{held(gone("a", 0)), member("b", "", at(118)), well("c")}, want: "a", back: 1, until: 3 * time.Minute},
		"the one that is lost is lost in another way since": {fleet: fleet{held(gone("a", 119)), member("b", "", at(118)), well("c")}, want: "a", back: 1, until: 3 * time.Minute},
		"another one was back before it was suspected":      {fleet: fleet{heldSince(gone("a", 119), 119), member("b", "", at(118)), well("c")}},
		"two are back, one after the other":                 {fleet: fleet{held(gone("a", 0)), member("b", "", at(116)), member("c", "", at(119))}, want: "a", back: 2, until: 4 * time.Minute},
		"one is back for long":                              {fleet: fleet{held(gone("a", 0)), member("b", "", at(100)), well("c")}},
		"another one flapped":                               {fleet: fleet{gone("a", 0), member("b", "", at(118)), well("c")}},
		"one answers again":                                 {fleet: fleet{gone("a", 0), member("b", clusterv1alpha1.ClusterAnswersAgainReason, at(1)), well("c")}, want: "a b"},
		"what confirms is no time": {fleet: fleet{func() *clusterv1alpha1.Cluster {
			c := gone("a", 0)
			c.Annotations = map[string]string{clusterv1alpha1.ConfirmLostAnnotation: "yes"}
			return c
		}(), gone("b", 1), well("c")}, want: "a b"},
		"refused credentials are no loss": {fleet: fleet{gone("a", 0), member("b", clusterv1alpha1.ClusterCredentialsRefusedReason, noon), well("c")}},
		"another share":                   {fleet: fleet{gone("a", 0), gone("b", 0), well("c"), well("d")}, breaker: failover.Breaker{Share: 0.5}},
		"never":                           {fleet: fleet{gone("a", 0), gone("b", 0)}, breaker: failover.Breaker{Share: 1}},
		"another window":                  {fleet: fleet{gone("a", 0), gone("b", 6), well("c")}, breaker: failover.Breaker{Window: 10 * time.Minute}, want: "a b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			losses := tc.breaker.Losses(tc.fleet, noon.Add(2*time.Hour))
			if diff := cmp.Diff(tc.want, strings.Join(losses.Clusters, " ")); diff != "" {
				t.Errorf("suspected (-want +got):\n%s", diff)
			}
			if losses.Back != tc.back {
				t.Errorf("%d are back, want %d", losses.Back, tc.back)
			}
			var until time.Duration
			if !losses.Until.IsZero() {
				until = losses.Until.Sub(noon.Add(2 * time.Hour))
			}
			if until != tc.until {
				t.Errorf("for %s, want %s", until, tc.until)
			}
			due, _ := failover.Rules{Taints: true, Breaker: tc.breaker}.Of(tc.fleet, nil, noon.Add(2*time.Hour))
			for _, c := range tc.fleet {
				_, moves := due[c.Name]
				if tainted := len(c.Spec.Taints) > 0; moves != (tainted && !losses.Suspected(c.Name)) {
					t.Errorf("%s moves: %v", c.Name, moves)
				}
			}
		})
	}
	for want, losses := range map[string]failover.Losses{
		"2 of 3 clusters were lost at once: a, b":                               {Clusters: []string{"a", "b"}, Lost: 2, Of: 3},
		"2 of 6 clusters were lost at once, and 3 came back a moment ago: a, b": {Clusters: []string{"a", "b"}, Lost: 2, Back: 3, Of: 6},
		"2 of 3 clusters were lost at once, b among them":                       {Clusters: []string{"b"}, Lost: 2, Of: 3}, // the loss of the other is confirmed
	} {
		if got := losses.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
