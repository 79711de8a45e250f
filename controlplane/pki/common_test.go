package pki_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/controlplane/pki"
)

// sharedStore is a place that several servers share.
type sharedStore struct {
	mu      sync.Mutex
	files   map[string][]byte
	version int64
	away    error
	heard   []time.Time // times by the leader's clock
}

func (s *sharedStore) Heard(_ context.Context, far func(time.Time) bool) (time.Time, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.heard, far)
	if i < 0 {
		return time.Time{}, false, s.away
	}
	return s.heard[i], true, s.away
}

func (s *sharedStore) Load(context.Context) (map[string][]byte, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files, s.version, s.away
}

func (s *sharedStore) Save(_ context.Context, files map[string][]byte, version int64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version != s.version || s.away != nil {
		return false, s.away
	}
	s.files, s.version = files, version+1
	return true, nil
}

func (s *sharedStore) saves() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

func common(dir string) map[string]string {
	out := map[string]string{}
	for _, name := range []string{"ca.crt", "ca-signer.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "service-account.key", "service-account.pub"} {
		content, _ := os.ReadFile(filepath.Join(dir, name))
		out[name] = string(content)
	}
	return out
}

func TestServersHaveTheirAuthoritiesInCommon(t *testing.T) {
	clk := testingclock.NewFakeClock(start)
	t.Run("what the first had on disk is what all have", func(t *testing.T) {
		s, before, second := &sharedStore{}, t.TempDir(), t.TempDir()
		fill(t, before, clk) // the only server so far
		was := contents(t, before)
		for _, dir := range []string{before, second, before} {
			if _, err := pki.OpenCommon(t.Context(), dir, clk, s); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(was, contents(t, before)); diff != "" {
			t.Errorf("files of the first (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(common(before), common(second)); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
		if s.saves() != 1 {
			t.Errorf("what all have was written %d times", s.saves())
		}
	})
	t.Run("servers that start at once have the same", func(t *testing.T) {
		s, dirs := &sharedStore{}, []string{t.TempDir(), t.TempDir(), t.TempDir()}
		var all sync.WaitGroup
		for _, dir := range dirs {
			all.Go(func() {
				if _, err := pki.OpenCommon(t.Context(), dir, clk, s); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, dir := range dirs[1:] {
			if diff := cmp.Diff(common(dirs[0]), common(dir)); diff != "" {
				t.Errorf("(-first +other):\n%s", diff)
			}
		}
	})
	t.Run("one that had its own takes those of all and keeps its keys aside", func(t *testing.T) {
		s, first, second := &sharedStore{}, t.TempDir(), t.TempDir()
		fill(t, second, clk)
		own := common(second)
		for _, dir := range []string{first, second} {
			if _, err := pki.OpenCommon(t.Context(), dir, clk, s); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(common(first), common(second)); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
		aside, err := os.ReadFile(filepath.Join(second, "replaced", "ca.key"))
		if err != nil || string(aside) != own["ca.key"] {
			t.Errorf("its own key is lost: %v", err)
		}
	})
	t.Run("without the place nothing is made", func(t *testing.T) {
		dir := t.TempDir()
		if _, err := pki.OpenCommon(t.Context(), dir, clk, &sharedStore{away: errors.New("no store")}); err == nil {
			t.Error("it went on by itself")
		}
		if files := contents(t, dir); len(files) != 0 {
			t.Errorf("it made %v", files)
		}
	})
}

// TestServersRenewTheirAuthorityOnce lets two servers find the same authority due for renewal.
func TestServersRenewTheirAuthorityOnce(t *testing.T) {
	s, clk, dirs := &sharedStore{}, testingclock.NewFakeClock(start), []string{t.TempDir(), t.TempDir()}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, dir := range dirs {
		store, err := pki.OpenCommon(ctx, dir, clk, s)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { store.Run(ctx, func(err error) { t.Error(err) }) })
	}
	before := common(dirs[0])
	agreed := func(step time.Duration) func(context.Context) (bool, error) {
		return func(context.Context) (bool, error) {
			if clk.HasWaiters() {
				clk.Step(step)
				step = time.Hour
			}
			a, b := common(dirs[0]), common(dirs[1])
			return a["ca.crt"] != before["ca.crt"] && cmp.Equal(a, b), nil
		}
	}
	if err := wait.PollUntilContextTimeout(ctx, time.Millisecond, time.Minute, true, agreed(7*year)); err != nil {
		t.Fatal(err)
	}
	stop()
	all.Wait()
	if after := common(dirs[0]); after["ca.key"] != before["ca.key"] || after["ca.crt"] != common(dirs[1])["ca.crt"] {
		t.Error("the servers have different authorities")
	}
	if s.saves() != 2 {
		t.Errorf("what all have was written %d times, want once at the start and once for the renewal", s.saves())
	}
}

// TestAClockThatIsWrongRenewsNothingForAll starts one more server whose own clock may be wrong.
func TestAClockThatIsWrongRenewsNothingForAll(t *testing.T) {
	cases := map[string]struct {
		now     time.Time
		others  []time.Time // by the leader's clock
		want    string      // of the error
		renewed bool
	}{
		"a clock eight years ahead of who leads":         {now: start.Add(8 * year), others: []time.Time{start, start}, want: "says 2034-02-27T12:00:00Z, and the replica that leads says 2026-03-01T12:00:00Z: set the clock that is wrong"},
		"who leads changes meanwhile":                    {now: start.Add(8 * year), others: []time.Time{start.Add(8 * year), start}, want: "set the clock that is wrong"},
		"a clock before the authorities were made":       {now: start.Add(-20 * year), others: []time.Time{start}, want: "set the clock that is wrong"},
		"a clock that is wrong where nothing is due":     {now: start.Add(year), others: []time.Time{start}},
		"all clocks say that it is time":                 {now: start.Add(7 * year), others: []time.Time{start.Add(7*year - time.Minute)}, renewed: true},
		"nobody leads: the control plane was off":        {now: start.Add(8 * year), renewed: true},
		"nobody leads, and the authorities have expired": {now: start.Add(30 * year), renewed: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, first := &sharedStore{heard: tc.others}, t.TempDir()
			if _, err := pki.OpenCommon(t.Context(), first, testingclock.NewFakeClock(start), s); err != nil {
				t.Fatal(err)
			}
			_, err := pki.OpenCommon(t.Context(), t.TempDir(), testingclock.NewFakeClock(tc.now), s)
			if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("error = %v, want one line with %q", err, tc.want)
			}
			if renewed := s.saves() == 2; renewed != tc.renewed {
				t.Errorf("what all have was written %d times", s.saves())
			}
		})
	}
}
