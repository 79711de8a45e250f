package repository

import (
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// TestWhatARemoteSaidCounts for as long as nobody has asked since, and a twentieth of the interval.
func TestWhatARemoteSaidCounts(t *testing.T) {
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	one := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one"}}
	type happens struct {
		after time.Duration
		what  string
	}
	for name, tc := range map[string]struct {
		events   []happens
		at       time.Duration
		interval time.Duration
		want     time.Duration // after the start; -1 for nothing that others have asked
	}{
		"nothing is known of it":                   {at: time.Hour, interval: time.Minute, want: -1},
		"its interval is over":                     {[]happens{{0, "create"}}, time.Hour, time.Minute, time.Hour - 3*time.Second},
		"its interval is long":                     {[]happens{{0, "create"}}, 20 * time.Hour, 10 * time.Hour, 20*time.Hour - 10*time.Second},
		"its interval is short":                    {[]happens{{0, "create"}}, time.Hour, time.Second, time.Hour - 50*time.Millisecond},
		"it was made just now":                     {[]happens{{0, "create"}}, time.Second, time.Minute, 0},
		"somebody has asked just now":              {[]happens{{0, "create"}, {time.Hour - time.Second, "update"}}, time.Hour, time.Minute, time.Hour - time.Second},
		"somebody has asked, and that is long ago": {[]happens{{0, "create"}, {time.Minute, "update"}}, time.Hour, time.Minute, time.Hour - 3*time.Second},
		"it was deleted, and made again elsewhere": {[]happens{{0, "create"}, {time.Minute, "delete"}}, time.Hour, time.Minute, -1},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(start)
			w := newWishes(clock)
			p := w.Predicate()
			for _, e := range tc.events {
				clock.SetTime(start.Add(e.after))
				passed := map[string]func() bool{
					"create": func() bool { return p.Create(event.CreateEvent{Object: one}) },
					"update": func() bool { return p.Update(event.UpdateEvent{ObjectOld: one, ObjectNew: one}) },
					"delete": func() bool { return p.Delete(event.DeleteEvent{Object: one}) },
				}[e.what]()
				if !passed {
					t.Errorf("the %s was kept from the loop", e.what)
				}
			}
			clock.SetTime(start.Add(tc.at))
			want := start.Add(tc.want)
			if tc.want == -1 {
				want = time.Time{}
			}
			if got := w.since(one, tc.interval); !got.Equal(want) {
				t.Errorf("since = %v, want %v", got, want)
			}
		})
	}
}
