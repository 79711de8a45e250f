package placement

import (
	"slices"

	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/plugins"
)

// own returns how the plugins of o differ from the built-in ones, in the form of --plugins: the
// name of one that is added, and "-" before that of one that is left out. Nil where they
// do not differ.
func (o *Options) own() []string {
	if o.Plugins == nil {
		return nil
	}
	builtIn, asked := pluginNames(plugins.All()), pluginNames(o.Plugins)
	var out []string
	for _, name := range asked {
		if !slices.Contains(builtIn, name) {
			out = append(out, name)
		}
	}
	for _, name := range builtIn {
		if !slices.Contains(asked, name) {
			out = append(out, "-"+name)
		}
	}
	return out
}

// As returns o as the control plane has it that recorded own, as far as o has the plugins:
// without those that are left out there. Missing are the names of those that o lacks. o is
// not changed.
func (o Options) As(own []string) (as Options, missing []string) {
	if len(own) == 0 {
		return o, nil
	}
	all := o.Plugins
	if all == nil {
		all = plugins.All()
	}
	o.Plugins = slices.DeleteFunc(slices.Clone(all), func(p framework.Plugin) bool { return slices.Contains(own, "-"+p.Name()) })
	for _, name := range own {
		if name != "" && name[0] != '-' && !slices.Contains(pluginNames(all), name) {
			missing = append(missing, name)
		}
	}
	return o, missing
}

func pluginNames(all []framework.Plugin) []string {
	out := make([]string, len(all))
	for i, p := range all {
		out[i] = p.Name()
	}
	return out
}
