package binding

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

func TestHearsay(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	h := newHearsay(now, time.Minute)
	old, other := work("a"), work("b")
	said := work("a", func(w *workv1alpha1.Work) { w.Status.Conditions = []metav1.Condition{{Type: "Applied"}} })
	edited := work("a", func(w *workv1alpha1.Work) { w.Labels["mine"] = "1" })

	now.SetTime(time.Unix(600, 0)) // it began to wait for the lease long before it began
	all := []*workv1alpha1.Work{said}
	steps := []struct {
		name       string
		do         func() bool
		done, want bool
		left       time.Duration
	}{
		{name: "it begins", left: time.Minute},
		{name: "somebody labels the Work", do: func() bool { return h.heard(old, edited) }, left: time.Minute},
		{name: "it says something", do: func() bool { return h.heard(old, said) }, done: true, want: true, left: time.Minute},
		{name: "it says something again", do: func() bool { return h.heard(said, old) }, want: true, left: time.Minute},
		{name: "another Work counts, too", do: func() bool { all = append(all, other); return false }, left: time.Minute},
		{name: "a moment before the time is over", do: func() bool { now.SetTime(time.Unix(659, 0)); return false }, left: time.Second},
		{name: "the time is over", do: func() bool { now.SetTime(time.Unix(660, 0)); return h.heard(other, said) }, want: true},
		{name: "the clock is set back", do: func() bool { now.SetTime(time.Unix(0, 0)); return false }, want: true},
	}
	for _, step := range steps {
		if step.do != nil && step.do() != step.done {
			t.Errorf("%s: first word = %v, want %v", step.name, !step.done, step.done)
		}
		if got := h.left(); got != step.left {
			t.Errorf("%s: doubts for %s, want %s", step.name, got, step.left)
		}
		if got := h.believes(all); got != step.want {
			t.Errorf("%s: believes = %v, want %v", step.name, got, step.want)
		}
	}
	if h := newHearsay(now, 0); h.left() != 0 || !h.believes(all) {
		t.Error("without a time there is doubt")
	}
}
