package arch_test

import (
	"slices"
	"strings"
	"testing"
)

// TestTheKitIsShared: what only one package or program uses is below it, unless tests of others do. What only
// tests use may be anywhere.
func TestTheKitIsShared(t *testing.T) {
	users, tests := map[string][]string{}, map[string][]string{}
	for _, p := range packages(t) {
		for _, dep := range slices.Concat(p.TestImports, p.XTestImports) {
			tests[dep] = append(tests[dep], userOf(p.ImportPath))
		}
		for _, dep := range p.Imports {
			if user := userOf(p.ImportPath); within(dep, "internal") && !slices.Contains(users[dep], user) {
				users[dep] = append(users[dep], user)
			}
		}
	}
	for path, by := range users {
		ofOthers := slices.ContainsFunc(tests[path], func(user string) bool { return user != by[0] && user != path })
		if len(by) == 1 && !strings.HasPrefix(path, by[0]+"/") && !ofOthers {
			t.Errorf("%s is used by %s alone: move it there", path, by[0])
		}
	}
}

// userOf is what counts as one user: a package, or a program with all of its packages.
func userOf(path string) string {
	rest, program := strings.CutPrefix(path, module+"/cmd/")
	if !program {
		return path
	}
	name, _, _ := strings.Cut(rest, "/")
	return module + "/cmd/" + name
}
