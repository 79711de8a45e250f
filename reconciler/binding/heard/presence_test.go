package heard

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestPresence: an answer counts if it is newer than the binding's first question, and once for
// each binding.
func TestPresence(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(100, 0))
	heard := time.Unix(100, 0).Add(-time.Millisecond)
	p := NewPresence(now, func(_ string, asked time.Time) (time.Time, bool, time.Duration) {
		if heard.Before(asked) {
			return time.Time{}, false, time.Second
		}
		return time.Unix(1, 0), true, 0
	})
	web, api := client.ObjectKey{Name: "web"}, client.ObjectKey{Name: "api"}
	for _, step := range []struct {
		name    string
		second  int64
		hears   bool
		does    func()
		binding client.ObjectKey
		yes     bool
	}{
		{name: "what was heard before it asked", second: 100, binding: web},
		{name: "nothing is heard since", second: 103, binding: web},
		{name: "it is heard", second: 104, hears: true, binding: web, yes: true},
		{name: "another one asks after that", second: 105, binding: api},
		{name: "the first asks again", second: 105, binding: web},
		{name: "it is heard again", second: 106, hears: true, binding: api, yes: true},
		{name: "for the first, too", second: 107, binding: web, yes: true},
		{name: "one that asks", second: 108, binding: web},
		{name: "one that has ended meanwhile asks anew", second: 110, hears: true, does: func() { p.End(web); now.SetTime(time.Unix(111, 0)) }, binding: web},
		{name: "one that was not ready meanwhile does, too", second: 112, hears: true, does: func() { p.Forget(web, "east"); now.SetTime(time.Unix(113, 0)) }, binding: web},
		{name: "it is heard at last", second: 114, hears: true, binding: web, yes: true},
	} {
		now.SetTime(time.Unix(step.second, 0))
		if step.hears {
			heard = now.Now()
		}
		if step.does != nil {
			step.does()
		}
		since, yes, again := p.Ask(step.binding, "east")
		if yes != step.yes || yes == since.IsZero() || yes == (again > 0) {
			t.Errorf("%s: %t since %s, asks again after %s", step.name, yes, since, again)
		}
	}
	if len(p.asked) > 0 {
		t.Errorf("somebody waits yet: %v", p.asked)
	}
}
