package recreatebackoff_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/reconciler/apply/recreatebackoff"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func web(name string) inventory.ID {
	return inventory.ID{Namespace: "shop", Name: name, GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}}
}

// TestWhatIsDeletedAgainAndAgain: an object that somebody deletes whenever it is there costs a run now and then,
// and not several a second.
func TestWhatIsDeletedAgainAndAgain(t *testing.T) {
	const ms = time.Millisecond
	var r recreatebackoff.Returns
	now := noon
	var waits []time.Duration
	for range 10 {
		wait := r.Deleted(web("web"), now, 30*time.Second)
		waits = append(waits, wait)
		if wait > 0 && r.Take(now.Add(wait-1)) {
			t.Errorf("it comes back before %s are over", wait)
		}
		if now = now.Add(wait); !r.Take(now) || r.Take(now) {
			t.Errorf("it does not come back, once, after %s", wait)
		}
		now = now.Add(100 * ms)
	}
	want := []time.Duration{0, 500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 16000 * ms, 30000 * ms, 30000 * ms, 30000 * ms}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if wait := r.Deleted(web("other"), now, 30*time.Second); wait != 0 {
		t.Errorf("another object is waited with for %s", wait)
	}
	if wait := r.Deleted(web("web"), now.Add(29*time.Second), 30*time.Second); wait != 30*time.Second {
		t.Errorf("one that stood for less than the longest wait is waited with for %s", wait)
	}
	if wait := r.Deleted(web("web"), now.Add(90*time.Second), 30*time.Second); wait != 0 {
		t.Errorf("one that stood for as long as the longest wait is waited with for %s", wait)
	}
}

// TestTheFirstBringsAllBack: the run for the first object that is due applies all that are missing.
func TestTheFirstBringsAllBack(t *testing.T) {
	var r recreatebackoff.Returns
	if r.Take(noon) || !r.Due().IsZero() {
		t.Error("something comes back that nobody deleted")
	}
	for range 4 {
		r.Deleted(web("web"), noon, time.Minute)
		r.Take(noon.Add(time.Minute))
	}
	r.Deleted(web("web"), noon, time.Minute)
	r.Deleted(web("other"), noon.Add(time.Second), time.Minute)
	if due := r.Due().Sub(noon); due != time.Second {
		t.Errorf("what comes first is due after %s", due)
	}
}

// TestWhatIsMissing: a missing object is named as long as it is missing, if that is for more than a few seconds.
func TestWhatIsMissing(t *testing.T) {
	// before deletes an object so many times; it is there again afterwards.
	before := func(r *recreatebackoff.Returns, name string, times int) {
		for range times {
			r.Deleted(web(name), noon, time.Minute)
			r.Back(noon)
		}
	}
	deleted := func(r *recreatebackoff.Returns, name string, times int) {
		before(r, name, times-1)
		r.Deleted(web(name), noon, time.Minute)
	}
	for name, tc := range map[string]struct {
		do   func(*recreatebackoff.Returns)
		want string
	}{
		"nothing was deleted":      {do: func(*recreatebackoff.Returns) {}},
		"it comes back at once":    {do: func(r *recreatebackoff.Returns) { deleted(r, "web", 1) }},
		"it comes back within 2 s": {do: func(r *recreatebackoff.Returns) { deleted(r, "web", 4) }},
		"it comes back after 4 s":  {do: func(r *recreatebackoff.Returns) { deleted(r, "web", 5) }, want: "Deployment/shop/web is not there: it was deleted 5 times in a row, and comes back at 2026-01-02T12:00:04Z; find out who deletes it"},
		"so does another one": {do: func(r *recreatebackoff.Returns) {
			before(r, "web", 5)
			deleted(r, "api", 5)
			r.Deleted(web("web"), noon, time.Minute)
		}, want: "Deployment/shop/api is not there: it was deleted 5 times in a row, and comes back at 2026-01-02T12:00:04Z; find out who deletes it; so were 1 more"},
		"another one takes it with it": {do: func(r *recreatebackoff.Returns) {
			before(r, "web", 5)
			deleted(r, "api", 3)
			r.Deleted(web("web"), noon, time.Minute)
		}, want: "Deployment/shop/web is not there: it was deleted 6 times in a row, and comes back at 2026-01-02T12:00:01Z; find out who deletes it"},
		"it is back":              {do: func(r *recreatebackoff.Returns) { deleted(r, "web", 5); r.Take(noon.Add(4 * time.Second)) }},
		"all was applied since":   {do: func(r *recreatebackoff.Returns) { deleted(r, "web", 5); r.Back(noon.Add(time.Second)) }},
		"all was applied, before": {do: func(r *recreatebackoff.Returns) { deleted(r, "web", 5); r.Back(noon.Add(-time.Second)) }, want: "Deployment/shop/web is not there: it was deleted 5 times in a row, and comes back at 2026-01-02T12:00:04Z; find out who deletes it"},
		"another one is deleted much later": {do: func(r *recreatebackoff.Returns) {
			deleted(r, "web", 5)
			r.Deleted(web("api"), noon.Add(2*time.Minute), time.Minute)
		}, want: "Deployment/shop/web is not there: it was deleted 5 times in a row, and comes back at 2026-01-02T12:00:04Z; find out who deletes it"},
	} {
		t.Run(name, func(t *testing.T) {
			var r recreatebackoff.Returns
			tc.do(&r)
			if got := r.Missing(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhatIsReported(t *testing.T) {
	var r recreatebackoff.Returns
	var messages []string
	for range 4 {
		r.Deleted(web("web"), noon, time.Minute)
		messages = append(messages, r.Message())
	}
	r.Deleted(web("web"), noon, time.Minute)
	for range 3 {
		r.Deleted(web("other"), noon, time.Minute)
	}
	messages = append(messages, r.Message(), r.Message())
	const text = "; Deployment/shop/web was deleted "
	const later = " times in a row, and comes back later each time: find out who deletes it"
	want := []string{"", "", text + "3" + later, text + "4" + later, text + "5" + later + "; so were 1 more", ""}
	if diff := cmp.Diff(want, messages); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
