package placement

import "github.com/flotilla-io/flotilla/policies/placement/plugins"

// As returns o as the control plane has it that recorded own, as far as o has the plugins:
// without those that are left out there. Missing are the names of those that o lacks. o is
// not changed.
func (o Options) As(own []string) (as Options, missing []string) {
	o.Plugins, missing = plugins.As(o.Plugins, own)
	return o, missing
}
