package apply_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestWhatIsOwedGoes: what an accepted revision dropped goes once it is replaced, first where it is, also while a newer one
// is refused, and after a restart. The last good revision decides: also if the refused one holds the object again.
func TestWhatIsOwedGoes(t *testing.T) {
	nowhere := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: nowhere}\n"
	for name, tc := range map[string]struct {
		reason    string
		refused   map[string]string
		restarted bool
	}{
		"one that the control plane does not accept": {applier.ReasonNamespaceNotFound, map[string]string{"app/x.yaml": named("a", "b", "c", "new") + nowhere}, false},
		"one that has the object again":              {applier.ReasonNamespaceNotFound, map[string]string{"app/x.yaml": named("a", "b", "c", "new", "old") + nowhere}, false},
		"one that cannot be built":                   {meta.BuildFailedReason, map[string]string{"app/x.yaml": named("a", "b", "c", "new"), "app/y.yaml": "kind: [\n"}, false},
		"one without the folder, after a restart":    {"PathNotFound", map[string]string{"elsewhere/x.yaml": named("a")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCarried(newWorld(t))
			first := c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "old")})
			c.kustomization("web", eachSecond)
			c.bind("old")
			c.apply(c.east, "old", workv1alpha1.ResourceHealthy)
			c.apply(c.west, "old", workv1alpha1.ResourceHealthy)
			c.ready("web", first)
			c.ready("web", c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "new")}))
			c.bind("new")
			c.awaitReason("web", c.commit(tc.refused), tc.reason)
			if tc.restarted {
				c.stop()
				c.start()
			}
			c.apply(c.east, "new", workv1alpha1.ResourceHealthy)
			c.prunedFrom("old", c.east)
			c.apply(c.west, "new", workv1alpha1.ResourceHealthy)
			c.until("old is gone", func() (bool, string) { return c.configMap("old") == nil, "it is there" })
			c.until("the status has it no more", func() (bool, string) {
				text := strings.Join(inventoryOf(c.get("web")), " ")
				return !strings.Contains(text, "_old_") && len(inventory.Leaving(c.get("web").Status)) == 0, text
			})
			c.until("people are told", func() (bool, string) {
				return slices.ContainsFunc(c.events.about("web"), func(message string) bool {
					return strings.Contains(message, "Removed what had left revision ") && strings.Contains(message, "ConfigMap/"+c.namespace+"/old")
				}), strings.Join(c.events.about("web"), "; ")
			})
		})
	}
}

// TestWhatNobodyLetGoStays: what left the last good revision, and others may want, is not deleted while a newer one is refused.
func TestWhatNobodyLetGoStays(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "old"), "db/x.yaml": named("d")})
	w.kustomization("web", eachSecond)
	w.kustomization("db", in("./db"), eachSecond)
	w.ready("web", first)
	w.ready("db", first)
	second := w.commit(map[string]string{"app/x.yaml": named("a", "b", "c"), "db/x.yaml": "kind: [\n"})
	w.until("what others may want is undecided", func() (bool, string) {
		return len(inventory.Undecided(w.get("web").Status)) == 1, strings.Join(inventoryOf(w.get("web")), " ")
	})
	third := w.commit(map[string]string{"app/x.yaml": "kind: [\n", "db/x.yaml": named("d")})
	w.ready("db", third)
	w.awaitReason("web", third, meta.BuildFailedReason)
	if err := w.Hub.Delete(t.Context(), w.configMap("a")); err != nil {
		t.Fatal(err)
	}
	w.until("the last good revision is kept", func() (bool, string) { return w.configMap("a") != nil, "" })
	if w.configMap("old") == nil {
		t.Error("it is gone, as nobody may have let it go at " + second)
	}
}
