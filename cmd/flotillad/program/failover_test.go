package program

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/reconciler"
)

// TestFailover says what the flags about failing clusters come to.
func TestFailover(t *testing.T) {
	like := func(edits ...func(*reconciler.Failover)) reconciler.Failover {
		out := reconciler.Failover{
			Rules: failover.Rules{Tolerance: 5 * time.Minute, Purge: "Gracefully", State: true, Grace: 10 * time.Minute, Breaker: failover.Breaker{Share: failover.DefaultShare, Window: 5 * time.Minute}},
			Rate:  0.5, Judging: failover.Judging{HealthTimeout: 2 * time.Minute, Recent: 10 * time.Minute},
		}
		for _, edit := range edits {
			edit(&out)
		}
		return out
	}
	moves := func(f *reconciler.Failover) { f.Taints = true }
	for name, tc := range map[string]struct {
		args []string
		want reconciler.Failover
		err  string
		// idle is whether a flag is reported as without effect.
		idle bool
	}{
		"as it is, and as Karmada has it":    {want: like()},
		"the whole":                          {args: []string{"--failover=on"}, want: like(moves, func(f *reconciler.Failover) { f.Rate, f.Lost = 0, true })},
		"the whole, at a rate":               {args: []string{"--failover=on", "--resource-eviction-rate=5"}, want: like(moves, func(f *reconciler.Failover) { f.Rate, f.Lost = 5, true })},
		"as Karmada switches it on":          {args: []string{"--feature-gates=Failover=true", "--enable-no-execute-taint-eviction"}, want: like(moves)},
		"the gate alone":                     {args: []string{"--feature-gates=Failover=true"}, want: like()},
		"the flag alone":                     {args: []string{"--enable-no-execute-taint-eviction"}, want: like(), idle: true},
		"taints are not heeded":              {args: []string{"--feature-gates=Failover=true", "--enable-no-execute-taint-eviction", "--enable-taint-manager=false"}, want: like()},
		"none at all":                        {args: []string{"--resource-eviction-rate=0"}, want: like(func(f *reconciler.Failover) { f.Rate = -1 })},
		"no grace":                           {args: []string{"--graceful-eviction-timeout=0"}, want: like(func(f *reconciler.Failover) { f.Grace = 1 })},
		"another purge mode":                 {args: []string{"--no-execute-taint-eviction-purge-mode=Directly"}, want: like(func(f *reconciler.Failover) { f.Purge = "Directly" })},
		"the gate for grace off":             {args: []string{"--feature-gates=GracefulEviction=false"}, want: like(func(f *reconciler.Failover) { f.Purge = "Directly" })},
		"the gate for state off":             {args: []string{"--feature-gates=StatefulFailoverInjection=false"}, want: like(func(f *reconciler.Failover) { f.State = false })},
		"no tolerance, and whatever is lost": {args: []string{"--failover-tolerance=0", "--mass-failure-threshold=1"}, want: like(func(f *reconciler.Failover) { f.Tolerance, f.Breaker.Share = 0, 1 })},
		"what was moved is given longer": {args: []string{"--moved-health-timeout=9m", "--moved-health-window=1h"}, want: like(func(f *reconciler.Failover) {
			f.Judging = failover.Judging{HealthTimeout: 9 * time.Minute, Recent: time.Hour}
		})},
		"it is forgotten before it is judged": {args: []string{"--moved-health-timeout=9m", "--moved-health-window=9m"}, err: "--moved-health-timeout must be more than 0, and --moved-health-window more than that"},
		"neither on nor off":                  {args: []string{"--failover=maybe"}, err: `--failover "maybe" is neither on nor off`},
		"on and off":                          {args: []string{"--failover=on", "--feature-gates=Failover=false"}, err: "--failover=on switches the gate Failover on: leave it out of --feature-gates"},
		"on and half of it off":               {args: []string{"--failover=on", "--enable-taint-manager=false"}, err: "--failover=on switches --enable-taint-manager on: leave it out"},
		"a purge mode that there is not":      {args: []string{"--no-execute-taint-eviction-purge-mode=Sometimes"}, err: `--no-execute-taint-eviction-purge-mode "Sometimes" is neither Gracefully nor Directly`},
		"a share of nothing":                  {args: []string{"--mass-failure-threshold=0"}, err: "--mass-failure-threshold and --mass-failure-window must be more than 0"},
		"a negative rate":                     {args: []string{"--resource-eviction-rate=-1"}, err: "--failover-tolerance, --graceful-eviction-timeout and --resource-eviction-rate must not be negative"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := served(t, tc.args...)
			if err != nil || tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, o.loops.scheduling.Failover); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := len(o.loops.withoutEffect()) > 0; got != tc.idle {
				t.Errorf("without effect: %v", o.loops.withoutEffect())
			}
			if o.plane.Rules.AllowNoExecuteTaintPolicy != o.loops.failover.on() {
				t.Error("a ClusterTaintPolicy that evicts is refused, or taken without being asked")
			}
		})
	}
}
