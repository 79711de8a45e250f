package apply_test

import (
	"slices"
	"testing"
)

// A commit renames a child, and drops an object of it: the Events of the old one say who has the rest, and what was deleted.
func TestTheEndOfAKustomizationSaysWhatBecameOfItsObjects(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"app/child.yaml": child("inner", "inner"), "app/config.yaml": named("own"), "inner/config.yaml": named("a", "b", "c")})
	w.kustomization("web")
	w.ready("web", first)
	w.ready("inner", first)
	second := w.commit(map[string]string{"app/child.yaml": child("shop", "moved"), "app/config.yaml": named("own"), "moved/config.yaml": named("a", "b")})
	w.until("shop is there", func() (bool, string) { return !w.isGone("shop"), "" })
	w.ready("shop", second)
	w.until("inner is gone", func() (bool, string) { return w.isGone("inner"), "" })
	of := func(name string) string { return "ConfigMap/" + w.namespace + "/" + name }
	for _, want := range []string{
		"Deleted: Deleted with this Kustomization, at revision " + first + ": 1 deleted: " + of("c"),
		"HandingOver: Left to others by this Kustomization, which had applied revision " + first + ": Kustomization " + w.namespace + "/shop has " + of("a") + ", " + of("b"),
	} {
		w.until(want, func() (bool, string) {
			about := w.events.about("inner")
			return slices.Contains(about, want), "got:\n" + stringsOf(about)
		})
	}
}

func stringsOf(lines []string) (out string) {
	for _, line := range lines {
		out += line + "\n"
	}
	return out
}
