package request

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// TestWhoMayNotGoOn: what would be done is to be known first, in all clusters that there
// is an answer of.
func TestWhoMayNotGoOn(t *testing.T) {
	hold := &hubclaim.Hold{Clusters: []string{"east"}, Store: 20, Seen: 50}
	for name, tc := range map[string]struct {
		plan hubPlan
		want string // part of the error; empty for none
		says string
	}{
		"all were looked at": {plan: hubPlan{Hold: hold, Plan: setback.Plan{Idle: []string{"east"}, Unseen: []string{"north"}}}, says: "flotilla resume hub goes on"},
		"one was not yet":    {plan: hubPlan{Hold: hold, Plan: setback.Plan{Uncompared: []string{"west"}}}, want: "what would be done in west is not known yet", says: "west was not looked at yet"},
		"a copy acts in one": {
			plan: hubPlan{Hold: hold, Plan: setback.Plan{Elsewhere: []string{"west"}}},
			want: "another copy of this control plane acts in west", says: "west could not be looked at: another copy",
		},
		"nobody waits":                         {says: "there is nothing to resume"},
		"nobody waits yet, and a copy may act": {plan: hubPlan{Plan: setback.Plan{Elsewhere: []string{"west"}}}, want: "another copy", says: asked},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.plan.mayGoOn()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
			var out strings.Builder
			if err := tc.plan.text(&out, true); err != nil || !strings.Contains(out.String(), tc.says) {
				t.Errorf("%v, output:\n%swant %q", err, out.String(), tc.says)
			}
		})
	}
}

// TestHowLongItTakes: the text has the times that the control plane waits, each with the time until the next look.
func TestHowLongItTakes(t *testing.T) {
	const look = 10 * time.Second // between two looks at a cluster, by default
	for _, takes := range []time.Duration{hubclaim.UntilMoved + look, 3*hubclaim.UntilMoved + look} {
		if text := fmt.Sprintf("%.0fs", takes.Seconds()); !strings.Contains(asked, text) {
			t.Errorf("%q does not have %q", asked, text)
		}
	}
}
