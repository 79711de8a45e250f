package plugins

import (
	"slices"

	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

// Own returns how plugins differ from the built-in ones, in the form of --plugins: the
// name of one that is added, and "-" before that of one that is left out. Nil where they
// do not differ, and for nil, which are the built-in ones.
func Own(of []framework.Plugin) []string {
	if of == nil {
		return nil
	}
	builtIn, asked := names(All()), names(of)
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

// As returns plugins as the control plane has them that recorded own, as far as they are there:
// without those that are left out there. Missing are the names of those that lack.
func As(of []framework.Plugin, own []string) (as []framework.Plugin, missing []string) {
	if len(own) == 0 {
		return of, nil
	}
	if of == nil {
		of = All()
	}
	as = slices.DeleteFunc(slices.Clone(of), func(p framework.Plugin) bool { return slices.Contains(own, "-"+p.Name()) })
	for _, name := range own {
		if name != "" && name[0] != '-' && !slices.Contains(names(of), name) {
			missing = append(missing, name)
		}
	}
	return as, missing
}

func names(of []framework.Plugin) []string {
	out := make([]string, len(of))
	for i, p := range of {
		out[i] = p.Name()
	}
	return out
}
