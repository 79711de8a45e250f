package arch_test

import (
	"slices"
	"strings"
	"testing"
)

// kit are the packages of the room of loops that loops share: none of them is a loop.
var kit = []string{"bindings", "debounce", "decider", "dedup", "forecast", "hint", "inventory", "origins", "providers", "refusals", "reporting", "revisiongate", "secrets", "silences", "sleepdetector", "templatestore", "undelete", "workrename", "writecache"}

// foresees names, for packages of the kit, the loop whose decisions they foresee, by the functions that make them.
var foresees = map[string]string{"forecast": "apply"}

// TestLoopsImportNoSibling: loops talk through the API server. What several of them need is
// part of the kit, which knows no loop.
func TestLoopsImportNoSibling(t *testing.T) {
	found := map[string]bool{}
	for _, p := range packages(t) {
		from := loopOf(p.ImportPath)
		if from == "" || strings.HasSuffix(p.Name, "test") {
			continue
		}
		found[from] = true
		for _, dep := range p.Imports {
			to := loopOf(dep)
			if to == "" || to == from || slices.Contains(kit, to) || foresees[from] == to {
				continue
			}
			t.Errorf("%s imports %s: what they share belongs to a package of the kit", p.ImportPath, dep)
		}
	}
	for _, name := range kit {
		if !found[name] {
			t.Errorf("the kit has no %s: remove it from the list", name)
		}
	}
}

// loopOf returns the part of the room of loops that a package belongs to; "" for one
// outside, and for the room itself, which connects them.
func loopOf(path string) string {
	below, inside := strings.CutPrefix(path, module+"/reconciler/")
	if !inside {
		return ""
	}
	name, _, _ := strings.Cut(below, "/")
	return name
}
