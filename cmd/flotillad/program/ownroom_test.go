package program

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
)

// none is a custom plugin.
type none struct{}

func (none) Name() string                        { return "None" }
func (none) Most(*nodes.Index, *nodes.Ask) int64 { return 0 }

// TestOnesOwnPluginsCountRoom: the loops ask them, where nodes count.
func TestOnesOwnPluginsCountRoom(t *testing.T) {
	for by, want := range map[string]int{"nodes": 1, "least": 1, "reported": 0} {
		t.Run(by, func(t *testing.T) {
			o, flags := &serveOptions{}, pflag.NewFlagSet("", pflag.ContinueOnError)
			o.loops.take(Options{Room: []nodes.Plugin{none{}}})
			o.addFlags(flags)
			if err := flags.Parse([]string{"--data-dir", "unused", "--estimates", by}); err != nil {
				t.Fatal(err)
			}
			if err := o.validate(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, len(o.loops.scheduling.Estimates.Plugins)); diff != "" {
				t.Errorf("plugins (-want +got):\n%s", diff)
			}
		})
	}
}
