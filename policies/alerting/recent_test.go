package alerting_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/policies/alerting"
)

func TestIsNew(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	changed := func(change func(*alerting.Event)) alerting.Event {
		e := failure()
		change(&e)
		return e
	}
	going := func(message string) alerting.Event {
		return changed(func(e *alerting.Event) { e.Severity, e.Reason, e.Message = alerting.Info, "Progressing", message })
	}
	for name, tc := range map[string]struct {
		before, event alerting.Event
		after         time.Duration
		want          bool
	}{
		"the same":                            {before: failure(), event: failure()},
		"the same, after five minutes":        {before: failure(), event: failure(), after: 5 * time.Minute, want: true},
		"the same, just before that":          {before: failure(), event: failure(), after: 5*time.Minute - 1},
		"another object":                      {before: failure(), event: changed(func(e *alerting.Event) { e.InvolvedObject.Name = "db" }), want: true},
		"another message":                     {before: failure(), event: changed(func(e *alerting.Event) { e.Message = "other" }), want: true},
		"another revision":                    {before: failure(), event: changed(func(e *alerting.Event) { e.Metadata = map[string]string{"revision": "main@sha1:0"} }), want: true},
		"it goes on":                          {before: going("1/3"), event: going("2/3")},
		"an error that says something else":   {before: changed(func(e *alerting.Event) { e.Reason = "Progressing" }), event: changed(func(e *alerting.Event) { e.Reason, e.Message = "Progressing", "2" }), want: true},
		"the same at another time it happens": {before: failure(), event: changed(func(e *alerting.Event) { e.Timestamp.Time = begin })},
	} {
		t.Run(name, func(t *testing.T) {
			var r alerting.Recent
			if !r.IsNew(tc.before, begin) {
				t.Error("the first is no news")
			}
			if got := r.IsNew(tc.event, begin.Add(tc.after)); got != tc.want {
				t.Errorf("news: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestRecentIsBounded: a flood makes it forget, and it can be dropped once nothing in it counts.
func TestRecentIsBounded(t *testing.T) {
	var r alerting.Recent
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	isNew := func(message string) bool {
		e := failure()
		e.Message = message
		return r.IsNew(e, now)
	}
	for i := range 1200 {
		isNew(fmt.Sprint(i))
	}
	if !isNew("0") || isNew("1199") {
		t.Error("want the oldest forgotten, and the latest known")
	}
	if r.Idle(now.Add(9*time.Minute)) || !r.Idle(now.Add(10*time.Minute)) {
		t.Error("want it idle after ten minutes")
	}
}

// TestTheEndOfAFaultIsAChange: a fault that comes soon after the end of another one ends, too, in the same words.
func TestTheEndOfAFaultIsAChange(t *testing.T) {
	var r alerting.Recent
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	event := func(severity, reason, message string) alerting.Event {
		e := failure()
		e.Severity, e.Reason, e.Message = severity, reason, message
		return e
	}
	well := event(alerting.Info, "Succeeded", "works again")
	other := well
	other.InvolvedObject.Name, other.InvolvedObject.UID = "other", "other"
	for i, step := range []struct {
		event alerting.Event
		want  bool
	}{
		{event(alerting.Error, "VerificationError", "not signed"), true},
		{well, true}, {other, true}, {well, false},
		{event(alerting.Error, "VerificationError", "not signed"), false}, {well, false},
		{event(alerting.Error, "GitOperationFailed", "no route"), true},
		{well, true}, {well, false}, {other, false},
	} {
		if got := r.IsNew(step.event, now); got != step.want {
			t.Errorf("step %d: news is %t, want %t", i, got, step.want)
		}
	}
}
