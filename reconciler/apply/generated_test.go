package apply_test

import (
	"strings"
	"testing"
)

// A new content of objects that kustomize generates is no loss, however many they are: only the hashes in their names
// change.
func TestGeneratedObjectsGetOtherNames(t *testing.T) {
	w := newWorld(t)
	generated := func(value string) string {
		out := "namespace: NAMESPACE\nresources: [config.yaml]\nconfigMapGenerator:\n"
		for _, name := range []string{"one", "two", "three", "four", "five", "six"} {
			out += "- {name: " + name + ", literals: [value=" + value + "]}\n"
		}
		return out
	}
	files := map[string]string{"app/config.yaml": named("a", "b", "c"), "app/kustomization.yaml": generated("1")}
	w.kustomization("web")
	w.ready("web", w.commit(files))
	before := strings.Join(inventoryOf(w.get("web")), " ")

	files["app/kustomization.yaml"] = generated("2")
	w.ready("web", w.commit(files))
	w.until("what they replace is gone", func() (bool, string) {
		after := inventoryOf(w.get("web"))
		return len(after) == 9 && strings.Join(after, " ") != before, strings.Join(after, " ")
	})
}
