package inspection

import (
	"testing"
	"time"

	"k8s.io/kubectl/pkg/cmd/get"

	"github.com/flotilla-io/flotilla/internal/registration"
)

func TestWhoSeesAwaitedClusters(t *testing.T) {
	cases := map[string]struct {
		args           []string
		format, labels string
		want           bool
	}{
		"all clusters":       {args: []string{"clusters"}, want: true},
		"in their wide form": {args: []string{"Cluster"}, format: "wide", want: true},
		"as JSON":            {args: []string{"clusters"}, format: "json"},
		"by label":           {args: []string{"clusters"}, labels: "tier=gold"},
		"one":                {args: []string{"clusters", "east"}},
		"another kind":       {args: []string{"deployments"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			flags := get.NewGetPrintFlags()
			*flags.OutputFormat = tc.format
			g := &getter{GetOptions: &get.GetOptions{PrintFlags: flags, LabelSelector: tc.labels}, args: tc.args}
			if got := g.allClusters(); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	now := time.Date(2026, 3, 5, 9, 30, 0, 0, time.UTC)
	want := "cluster north was registered 5m ago and never heard of: flotilla status says what to do"
	if got := neverHeard(registration.Awaited{Cluster: "north", Since: now.Add(-5 * time.Minute)}, now); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
