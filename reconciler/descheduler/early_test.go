package descheduler

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/decider"
	"github.com/flotilla-io/flotilla/reconciler/decider/decidertest"
)

// asked notes when what is asked.
type asked struct {
	mu    sync.Mutex
	start time.Time
	of    []string
}

func (a *asked) waiters(_ context.Context, cluster string, q Question) (int32, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of = append(a.of, fmt.Sprintf("%s %s %s", time.Since(a.start), q.Of.Name, cluster))
	return 0, nil
}

// TestWhatIsReportedIsLookedAtInTime has it be told that something waits, and looks at what is asked
// about it, and when.
func TestWhatIsReportedIsLookedAtInTime(t *testing.T) {
	web := workv1alpha2.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: "web"}
	all := func(at string) []string {
		return []string{at + " other a", at + " other b", at + " web a", at + " web b"}
	}
	one := func(at string) []string { return []string{at + " web a", at + " web b"} }
	cases := map[string]struct {
		report func(d *Descheduler, start time.Time)
		want   []string // until the first interval is over
	}{
		"nothing is told":                     {func(*Descheduler, time.Time) {}, all("2m0s")},
		"since now":                           {func(d *Descheduler, at time.Time) { d.Soon(web, at) }, slices.Concat(one("1m0s"), all("2m0s"))},
		"since before, and said later":        {func(d *Descheduler, at time.Time) { time.Sleep(30 * time.Second); d.Soon(web, at) }, slices.Concat(one("1m0s"), all("2m0s"))},
		"since long ago":                      {func(d *Descheduler, at time.Time) { d.Soon(web, time.Unix(0, 0)) }, slices.Concat(one("0s"), all("2m0s"))},
		"twice, and it is due when it can be": {func(d *Descheduler, at time.Time) { d.Soon(web, at); d.Soon(web, at.Add(-time.Second)) }, slices.Concat(one("59s"), all("2m0s"))},
		"again and again": {func(d *Descheduler, at time.Time) {
			for range 15 {
				d.Soon(web, time.Unix(0, 0))
				time.Sleep(time.Second)
			}
		}, slices.Concat(one("0s"), one("10s"), one("20s"), all("2m0s"))},
		"of what is not there": {func(d *Descheduler, at time.Time) {
			d.Soon(workv1alpha2.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: "no"}, at)
		}, all("2m0s")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				index := func(i client.FieldIndexer) error { return decider.Index(t.Context(), i) }
				web, other := placed(), placed()
				web.Name = workv1alpha2.BindingName("Deployment", "web")
				other.Name, other.UID, other.Spec.Resource.Name = workv1alpha2.BindingName("Deployment", "other"), "b-2", "other"
				hub := decidertest.Hub(index, decidertest.Cluster("a"), decidertest.Cluster("b"), web, other).Build()
				is := &asked{start: time.Now()}
				d := New(hub, decider.New(hub, decider.Options{}), is.waiters, &recorder{}, Options{Threshold: time.Minute})
				ctx, stop := context.WithTimeout(t.Context(), DefaultInterval+time.Second)
				defer stop()
				ended := make(chan error)
				go func() { ended <- d.follow(ctx) }()
				tc.report(d, is.start)
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(tc.want, is.of); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestWhatIsReportedIsBounded reports more than is kept.
func TestWhatIsReportedIsBounded(t *testing.T) {
	d := New(nil, nil, nil, nil, Options{})
	for i := range 2 * mostEarly {
		d.Soon(workv1alpha2.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: fmt.Sprint(i)}, time.Unix(0, 0))
	}
	if got := len(d.early.take(time.Now())); got != mostEarly {
		t.Errorf("%d are kept, want %d", got, mostEarly)
	}
	if _, some := d.early.next(); some {
		t.Error("what was looked at is due again")
	}
}
