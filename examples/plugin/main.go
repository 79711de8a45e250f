// Command plugin is flotillad with a placement plugin of its own: what is in a
// namespace whose name starts with "prod-" runs on clusters labelled tier=gold,
// whatever its policy says.
//
// In go flotillad's commands and flags; out comes what flotillad does. The plugin
// is known to --plugins by its name, and shows in conditions and explanations
// like the built-in ones.
package main

import (
	"os"
	"strings"

	"github.com/flotilla-io/flotilla/cmd/flotillad/program"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

func main() {
	os.Exit(program.Run(options()))
}

// options are what this program adds to flotillad.
func options() program.Options {
	return program.Options{Name: "flotillad-gold", Plugins: []framework.Plugin{GoldForProduction{}}}
}

// GoldForProduction keeps production on clusters of the best tier.
type GoldForProduction struct{}

// Name implements framework.Plugin.
func (GoldForProduction) Name() string { return "GoldForProduction" }

// Filter implements framework.Filter.
func (GoldForProduction) Filter(req *framework.Request, c *framework.Cluster) string {
	if !strings.HasPrefix(req.Spec.Resource.Namespace, "prod-") || c.Labels["tier"] == "gold" {
		return ""
	}
	return "cluster(s) were not of tier gold"
}
