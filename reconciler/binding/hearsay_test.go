package binding

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// TestHearsay: what was said before the loop began, or before the cluster was last back,
// is doubted for a minute, or until it is said anew.
func TestHearsay(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	h := newHearsay(now, time.Minute)
	old, other := work("a"), work("b")
	other.UID = "u-b"
	said := speaks(old)
	edited := work("a", func(w *workv1alpha1.Work) { w.Labels["mine"] = "1" })

	now.SetTime(at(600)) // it began to wait for the lease long before it began
	all := []*workv1alpha1.Work{said}
	var since time.Time
	steps := []struct {
		name    string
		second  int64
		do      func() bool
		awaited bool
		doubts  time.Duration
	}{
		{name: "it begins", second: 600, doubts: time.Minute},
		{name: "somebody labels the Work", second: 600, do: func() bool { return h.heard(old, edited) }, doubts: time.Minute},
		{name: "it says something", second: 600, do: func() bool { return h.heard(old, said) }, awaited: true},
		{name: "it says something again", second: 600, do: func() bool { return h.heard(said, old) }},
		{name: "another Work counts, too", second: 600, do: func() bool { all = append(all, other); return false }, doubts: time.Minute},
		{name: "a moment before the time is over", second: 659, doubts: time.Second},
		{name: "the time is over", second: 660},
		{name: "what nobody waits for any more", second: 662, do: func() bool { return h.heard(other, speaks(other)) }},
		{name: "the cluster is back", second: 700, do: func() bool { since = at(700); return false }, doubts: time.Minute},
		{name: "one of the two says something", second: 710, do: func() bool { return h.heard(old, said) }, awaited: true, doubts: 50 * time.Second},
		{name: "the other one does, too", second: 759, do: func() bool { return h.heard(other, speaks(other)) }, awaited: true},
		{name: "the cluster is back once more", second: 765, do: func() bool { since = at(760); return false }, doubts: 55 * time.Second},
		{name: "and that is long ago", second: 820},
	}
	for _, step := range steps {
		now.SetTime(at(step.second))
		if step.do != nil && step.do() != step.awaited {
			t.Errorf("%s: somebody waits for it = %v, want %v", step.name, !step.awaited, step.awaited)
		}
		if got := h.doubts(all, since); got != step.doubts {
			t.Errorf("%s: doubts for %s, want %s", step.name, got, step.doubts)
		}
	}
	now.SetTime(at(2000))
	h.doubts(all, since)
	now.SetTime(at(3000))
	h.doubts(all, since)
	if n := len(h.recent) + len(h.older) + len(h.awaited); n > 0 {
		t.Errorf("%d words of long ago are kept", n)
	}
	if h := newHearsay(now, 0); h.doubts(all, at(3000)) != 0 {
		t.Error("without a time there is doubt")
	}
}

func speaks(w *workv1alpha1.Work) *workv1alpha1.Work {
	w = w.DeepCopy()
	w.Status.Conditions = []metav1.Condition{{Type: "Applied"}}
	return w
}
