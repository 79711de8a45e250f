package silences

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// west returns a cluster that fell silent at a time; zero for one that is heard of.
func west(since time.Time) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
	if !since.IsZero() {
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(since)}}
	}
	return c
}

func since(c *clusterv1alpha1.Cluster) time.Time {
	if len(c.Status.Conditions) == 0 {
		return time.Time{}
	}
	return c.Status.Conditions[0].LastTransitionTime.Time
}

// TestATurnIsReportedOnce: what lasts is told when its time has come, and told again only if that failed.
func TestATurnIsReportedOnce(t *testing.T) {
	type step struct {
		what   string
		after  time.Duration
		silent bool // the cluster, at noon
		gone   bool
		fails  bool

		calls int
		again time.Duration
		since map[string]time.Time
	}
	lost := map[string]time.Time{"west": noon}
	clock := clocktesting.NewFakePassiveClock(noon)
	calls, fails := 0, false
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(&clusterv1alpha1.Cluster{}).WithObjects(west(time.Time{})).Build()
	w := New(hub, Options{After: time.Minute, Since: since, Clock: clock, Turned: func(context.Context, string) error {
		if calls++; fails {
			return errors.New("no")
		}
		return nil
	}})
	for _, s := range []step{
		{what: "it is heard of"},
		{what: "it is silent", after: 20 * time.Second, silent: true, again: 40 * time.Second},
		{what: "it stays so, and that cannot be told", after: 40 * time.Second, silent: true, fails: true, calls: 1, since: lost},
		{what: "it is told", silent: true, calls: 2, since: lost},
		{what: "it is not told again", after: time.Hour, silent: true, calls: 2, since: lost},
		{what: "it is heard of again", calls: 3},
		{what: "it is gone", gone: true, calls: 3},
	} {
		clock.SetTime(clock.Now().Add(s.after))
		fails = s.fails
		c := west(time.Time{})
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			t.Fatal(err)
		}
		if c.Status = west(time.Time{}).Status; s.silent {
			c.Status = west(noon).Status
		}
		if s.gone {
			if err := hub.Delete(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		} else if err := hub.Status().Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		got := step{what: s.what, after: s.after, silent: s.silent, gone: s.gone}
		result, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		got.calls, got.again, got.fails = calls, result.RequeueAfter, err != nil
		if got.since, err = w.Silent(t.Context(), []string{"east", "west"}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, got, cmp.AllowUnexported(step{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.what, diff)
		}
	}
	if len(w.of) > 0 {
		t.Errorf("of a cluster that is gone it remembers %v", w.of)
	}
}

// TestThatAClusterIsHeardOfIsReportedInAPause: whoever saw a silence that was not told need not wait for the end of the pause.
func TestThatAClusterIsHeardOfIsReportedInAPause(t *testing.T) {
	type step struct {
		after  time.Duration
		silent bool
		fails  bool
		want   string // what is told
	}
	clock := clocktesting.NewFakePassiveClock(noon)
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(&clusterv1alpha1.Cluster{}).WithObjects(west(time.Time{})).Build()
	var calls string
	var fails bool
	call := func(what string) func(context.Context, string) error {
		return func(context.Context, string) error {
			if calls += what; fails {
				return errors.New("no")
			}
			return nil
		}
	}
	w := New(hub, Options{Since: since, Clock: clock, Turned: call("turned"), Heard: call("heard")})
	for i, s := range []step{
		{silent: true, want: "turned"},
		{after: time.Second, want: "turned"},
		{after: time.Second, silent: true},
		{after: time.Second, fails: true, want: "heard"},
		{after: time.Second, want: "heard"},
		{after: time.Second},
		{after: time.Second, silent: true},
		{after: time.Second, want: "heard"},
		{after: time.Minute, want: "turned"},
	} {
		clock.SetTime(clock.Now().Add(s.after))
		c := west(time.Time{})
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			t.Fatal(err)
		}
		if c.Status = west(time.Time{}).Status; s.silent {
			c.Status = west(clock.Now()).Status
		}
		if err := hub.Status().Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		calls, fails = "", s.fails
		if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)}); (err != nil) != s.fails || calls != s.want {
			t.Errorf("step %d: told %q, want %q: %v", i, calls, s.want, err)
		}
	}
}

func TestChanges(t *testing.T) {
	changes := New(nil, Options{Since: since}).changes()
	for name, tc := range map[string]struct {
		was, is *clusterv1alpha1.Cluster
		want    bool
	}{
		"its status is written": {west(noon), west(noon), false},
		"it falls silent":       {west(time.Time{}), west(noon), true},
		"it is heard of again":  {west(noon), west(time.Time{}), true},
		"it is so since then":   {west(noon), west(noon.Add(time.Second)), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := changes.Update(event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}); got != tc.want {
				t.Errorf("passes %t", got)
			}
		})
	}
}
