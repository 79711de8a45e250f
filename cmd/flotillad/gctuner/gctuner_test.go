package gctuner

import (
	"runtime/debug"
	"testing"
)

const mib = 1 << 20

func TestPercent(t *testing.T) {
	for name, tc := range map[string]struct {
		live, garbage uint64
		want          int
	}{
		"nothing lives yet":                     {0, 512 * mib, 400},
		"little lives":                          {10 * mib, 512 * mib, 400},
		"half as much lives as may be garbage":  {256 * mib, 512 * mib, 200},
		"as much lives as may be garbage":       {512 * mib, 512 * mib, 100},
		"far more lives":                        {8192 * mib, 512 * mib, 100},
		"no room at all is Go's own share":      {mib, 0, 100},
		"a heap that no machine has is no harm": {1 << 50, 1 << 51, 200},
	} {
		t.Run(name, func(t *testing.T) {
			if got := percent(tc.live, tc.garbage); got != tc.want {
				t.Errorf("percent = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestTune(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	stop := Tune(1 << 40)
	if got := debug.SetGCPercent(most); got != most {
		t.Errorf("the share is %d, want %d", got, most)
	}
	stop()
	if got := debug.SetGCPercent(77); got != 77 {
		t.Errorf("the share is %d after the end, want the 77 from before", got)
	}
	t.Setenv("GOGC", "50")
	Tune(1 << 40)()
	if got := debug.SetGCPercent(77); got != 77 {
		t.Errorf("the share is %d although the user has set one", got)
	}
}
