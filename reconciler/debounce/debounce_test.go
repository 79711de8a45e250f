package debounce_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/reconciler/debounce"
)

func TestAChangeWithoutFormIsDelayedToo(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	d := debounce.New[string](debounce.Options{Wait: time.Second, MaxWait: time.Second, Clock: clock})
	if got := d.Delay("shop/web", ""); got != time.Second {
		t.Errorf("delayed by %s", got)
	}
}

func TestALeadingChangeIsNotDelayed(t *testing.T) {
	const ms = time.Millisecond
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	d := debounce.New[string](debounce.Options{Wait: 250 * ms, MaxWait: 1000 * ms, Leading: true, Clock: clock})
	var got []time.Duration
	for _, step := range []struct {
		after time.Duration
		key   string
		wrote bool
	}{
		{key: "web"}, // the first
		{key: "web"}, // that could not be written
		{key: "web", wrote: true},
		{after: 10 * ms, key: "web"}, // soon after
		{after: 10 * ms, key: "db"},  // of another object
		{after: 240 * ms, key: "web"},
		{after: 0, key: "web", wrote: true},
		{after: 250 * ms, key: "web"}, // after a rest
	} {
		clock.SetTime(clock.Now().Add(step.after))
		if step.wrote {
			d.Wrote(step.key)
			continue
		}
		got = append(got, d.Delay(step.key, ""))
	}
	if diff := cmp.Diff([]time.Duration{0, 0, 250 * ms, 0, 0, 0}, got); diff != "" {
		t.Errorf("delays (-want +got):\n%s", diff)
	}
}

// TestAwait: what is one half waits for the other, which is delayed as every change is.
func TestAwait(t *testing.T) {
	const ms = time.Millisecond
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	d := debounce.New[string](debounce.Options{Wait: 250 * ms, MaxWait: 1000 * ms, Clock: clock})
	got := []time.Duration{d.Await("web", "sent")}
	for _, form := range []string{"sent", "healthy", "healthy"} {
		clock.SetTime(clock.Now().Add(300 * ms))
		if form == "sent" {
			got = append(got, d.Await("web", form))
			continue
		}
		got = append(got, d.Delay("web", form))
	}
	if diff := cmp.Diff([]time.Duration{1000 * ms, 700 * ms, 250 * ms, -50 * ms}, got); diff != "" {
		t.Errorf("delays (-want +got):\n%s", diff)
	}
}

func TestDelay(t *testing.T) {
	type step struct {
		after time.Duration
		form  string // empty clears
	}
	const ms = time.Millisecond
	cases := map[string]struct {
		steps []step
		want  []time.Duration
	}{
		"a change is delayed for the wait": {
			steps: []step{{form: "1/3"}, {after: 100 * ms, form: "1/3"}, {after: 150 * ms, form: "1/3"}},
			want:  []time.Duration{250 * ms, 150 * ms, 0},
		},
		"one that takes another form is delayed again": {
			steps: []step{{form: "1/3"}, {after: 200 * ms, form: "2/3"}, {after: 100 * ms, form: "2/3"}},
			want:  []time.Duration{250 * ms, 250 * ms, 150 * ms},
		},
		"but not for longer than the longest wait": {
			steps: []step{{form: "a"}, {after: 200 * ms, form: "b"}, {after: 200 * ms, form: "c"}, {after: 200 * ms, form: "d"}, {after: 200 * ms, form: "e"}, {after: 200 * ms, form: "f"}},
			want:  []time.Duration{250 * ms, 250 * ms, 250 * ms, 250 * ms, 200 * ms, 0},
		},
		"one that was written starts afresh": {
			steps: []step{{form: "a"}, {after: 250 * ms}, {after: 1 * ms, form: "a"}},
			want:  []time.Duration{250 * ms, 0, 250 * ms},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
			d := debounce.New[string](debounce.Options{Wait: 250 * ms, MaxWait: 1000 * ms, Clock: clock})
			var got []time.Duration
			for _, s := range tc.steps {
				clock.SetTime(clock.Now().Add(s.after))
				if s.form == "" {
					d.Forget("shop/web")
					got = append(got, 0)
					continue
				}
				got = append(got, d.Delay("shop/web", s.form))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("held back (-want +got):\n%s", diff)
			}
		})
	}
}
