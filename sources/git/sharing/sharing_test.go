package sharing_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/sources/git/sharing"
)

// TestWhoSharesAnAnswer has one ask at 12:00:00, which takes a second, and then another.
func TestWhoSharesAnAnswer(t *testing.T) {
	errBoom := errors.New("boom")
	cases := map[string]struct {
		first error
		key   string        // of the other
		at    time.Duration // when the other asks
		since time.Duration // what the other accepts
		want  int           // how often was asked
	}{
		"who asks meanwhile":                                 {key: "a", at: 500 * time.Millisecond, since: -time.Second, want: 1},
		"who asks meanwhile, and wants what is newer":        {key: "a", at: 500 * time.Millisecond, since: 200 * time.Millisecond, want: 2},
		"who asks for something else":                        {key: "b", at: 500 * time.Millisecond, since: -time.Second, want: 2},
		"who asks later, and accepts what is that old":       {key: "a", at: 3 * time.Second, since: -time.Millisecond, want: 1},
		"who asks later, and accepts what came since":        {key: "a", at: 3 * time.Second, since: 0, want: 2},
		"who asks while it fails":                            {first: errBoom, key: "a", at: 500 * time.Millisecond, since: -time.Second, want: 1},
		"who asks after it failed, whatever would have done": {first: errBoom, key: "a", at: 3 * time.Second, since: -time.Hour, want: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answers := sharing.NewAnswers[int](8, clock.RealClock{})
				var asked atomic.Int64
				ask := func(fails error) func(context.Context) (int, error) {
					return func(context.Context) (int, error) {
						n := asked.Add(1)
						time.Sleep(time.Second)
						return int(n), fails
					}
				}
				began := time.Now()
				var group sync.WaitGroup
				var first, other error
				group.Go(func() { _, first = answers.Get(t.Context(), "a", began, ask(tc.first)) })
				time.Sleep(tc.at)
				got, other := answers.Get(t.Context(), tc.key, began.Add(tc.since), ask(nil))
				group.Wait()
				if !errors.Is(first, tc.first) {
					t.Errorf("the first got %v", first)
				}
				if shared := tc.want == 1; shared && !errors.Is(other, tc.first) || !shared && (other != nil || got != 2) {
					t.Errorf("the other got %d, %v", got, other)
				}
				if int(asked.Load()) != tc.want {
					t.Errorf("asked %d times, want %d", asked.Load(), tc.want)
				}
			})
		})
	}
}

// TestWhoGivesUp: the others still get their answer, also of a call that the one who gives up has begun; and a call ends that
// nobody waits for.
func TestWhoGivesUp(t *testing.T) {
	for _, others := range []int{0, 1, 5} {
		t.Run(fmt.Sprintf("%d others wait", others), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answers := sharing.NewAnswers[string](8, clock.RealClock{})
				ended := false
				ask := func(ctx context.Context) (string, error) {
					select {
					case <-ctx.Done():
						ended = true
						return "", ctx.Err()
					case <-time.After(time.Second):
						return "yes", nil
					}
				}
				ctx, giveUp := context.WithCancel(t.Context())
				var group sync.WaitGroup
				var first error
				group.Go(func() { _, first = answers.Get(ctx, "a", time.Time{}, ask) })
				synctest.Wait()
				got := make([]string, others)
				for i := range got {
					group.Go(func() { got[i], _ = answers.Get(t.Context(), "a", time.Time{}, ask) })
				}
				synctest.Wait()
				giveUp()
				group.Wait()
				synctest.Wait()
				want := make([]string, others)
				for i := range want {
					want[i] = "yes"
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("the others (-want +got):\n%s", diff)
				}
				if !errors.Is(first, context.Canceled) || ended != (others == 0) {
					t.Errorf("who gave up got %v, and the call was ended: %t", first, ended)
				}
				if again, err := answers.Get(t.Context(), "a", time.Time{}, ask); again != "yes" || err != nil {
					t.Errorf("who asks afterwards gets %q, %v", again, err)
				}
			})
		})
	}
}

// TestTurns: one goes ahead, and those who wait for it go on together; one of another key does not wait.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := sharing.NewTurns()
		began := time.Now()
		var mu sync.Mutex
		got := map[string]time.Duration{}
		do := func(name, key string, ctx context.Context) {
			end, err := turns.Begin(ctx, key)
			mu.Lock()
			got[name] = time.Since(began)
			mu.Unlock()
			if err != nil {
				return
			}
			defer end()
			time.Sleep(time.Second)
		}
		var group sync.WaitGroup
		group.Go(func() { do("first", "a", t.Context()) })
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		group.Go(func() { do("second", "a", t.Context()) })
		group.Go(func() { do("third", "a", t.Context()) })
		group.Go(func() { do("impatient", "a", impatient) })
		group.Go(func() { do("other", "b", t.Context()) })
		group.Wait()
		want := map[string]time.Duration{"first": 0, "other": 0, "impatient": time.Second / 2, "second": time.Second, "third": time.Second}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("when each began (-want +got):\n%s", diff)
		}
	})
}
