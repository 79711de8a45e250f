package heard

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// TestFreshness: a status from before the loop began, or from before the cluster last became reachable,
// is stale for a minute, or until it changes.
func TestFreshness(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	h := NewFreshness(now, time.Minute)
	old := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{UID: "u-a"}}
	other := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{UID: "u-b"}}
	changed := speaks(old)
	edited := old.DeepCopy()
	edited.Labels = map[string]string{"mine": "1"}

	now.SetTime(at(600)) // the loop begins long after its start, as it waited for the Lease
	all := []*workv1alpha1.Work{changed}
	var since time.Time
	steps := []struct {
		name    string
		second  int64
		do      func() bool
		awaited bool
		stale   time.Duration
	}{
		{name: "it begins", second: 600, stale: time.Minute},
		{name: "somebody labels the Work", second: 600, do: func() bool { return h.Observe(old, edited) }, stale: time.Minute},
		{name: "its status changes", second: 600, do: func() bool { return h.Observe(old, changed) }, awaited: true},
		{name: "it changes again", second: 600, do: func() bool { return h.Observe(changed, old) }},
		{name: "another Work counts, too", second: 600, do: func() bool { all = append(all, other); return false }, stale: time.Minute},
		{name: "a moment before the time is over", second: 659, stale: time.Second},
		{name: "the time is over", second: 660},
		{name: "what nobody waits for any more", second: 662, do: func() bool { return h.Observe(other, speaks(other)) }},
		{name: "the cluster is back", second: 700, do: func() bool { since = at(700); return false }, stale: time.Minute},
		{name: "one of the two changes", second: 710, do: func() bool { return h.Observe(old, changed) }, awaited: true, stale: 50 * time.Second},
		{name: "the other one does, too", second: 759, do: func() bool { return h.Observe(other, speaks(other)) }, awaited: true},
		{name: "the cluster is back once more", second: 765, do: func() bool { since = at(760); return false }, stale: 55 * time.Second},
		{name: "and that is long ago", second: 820},
	}
	for _, step := range steps {
		now.SetTime(at(step.second))
		if step.do != nil && step.do() != step.awaited {
			t.Errorf("%s: somebody waits for it = %v, want %v", step.name, !step.awaited, step.awaited)
		}
		if got := h.UnconfirmedFor(all, since); got != step.stale {
			t.Errorf("%s: stale for %s, want %s", step.name, got, step.stale)
		}
	}
	now.SetTime(at(2000))
	h.UnconfirmedFor(all, since)
	now.SetTime(at(3000))
	h.UnconfirmedFor(all, since)
	if n := len(h.recent) + len(h.older) + len(h.awaited); n > 0 {
		t.Errorf("%d statuses of long ago are kept", n)
	}
	if h := NewFreshness(now, 0); h.UnconfirmedFor(all, at(3000)) != 0 {
		t.Error("a status is stale although there is no window")
	}
}

func speaks(w *workv1alpha1.Work) *workv1alpha1.Work {
	w = w.DeepCopy()
	w.Status.Conditions = []metav1.Condition{{Type: "Applied"}}
	return w
}
