package framework

import (
	"fmt"
	"slices"
	"strings"
)

// Select returns the plugins that the patterns leave on: "*" for all, a name
// for that one, and -name to switch one off. Later patterns do not undo a
// name that is switched off.
func Select(all []Plugin, patterns []string) []Plugin {
	out := []Plugin{}
	for _, p := range all {
		if enabled(p.Name(), patterns) {
			out = append(out, p)
		}
	}
	return out
}

func enabled(name string, patterns []string) bool {
	on := false
	for _, p := range patterns {
		if off, ok := strings.CutPrefix(p, "-"); ok && off == name {
			return false
		}
		on = on || p == "*" || p == name
	}
	return on
}

// Check says what is wrong with plugins, or with patterns for Select: a name
// that two plugins have or that no pattern could mean, a plugin that neither
// filters nor scores, and a pattern that means no plugin.
func Check(all []Plugin, patterns []string) error {
	names := make([]string, 0, len(all))
	for _, p := range all {
		if p == nil {
			return fmt.Errorf("a plugin is nil")
		}
		name := p.Name()
		_, filters := p.(Filter)
		_, scores := p.(Score)
		switch {
		case name == "" || name == "*" || strings.HasPrefix(name, "-") || strings.ContainsAny(name, ", "):
			return fmt.Errorf("a plugin cannot be called %q", name)
		case slices.Contains(names, name):
			return fmt.Errorf("there are two plugins %q", name)
		case !filters && !scores:
			return fmt.Errorf("plugin %s neither filters nor scores", name)
		}
		names = append(names, name)
	}
	for _, p := range patterns {
		if name := strings.TrimPrefix(p, "-"); p != "*" && !slices.Contains(names, name) {
			return fmt.Errorf("there is no plugin %q: there are %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}
