package apply_test

import (
	"fmt"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// What others change or delete while a Kustomization is suspended is reported, also after a restart, until it is as it
// was, or the Kustomization is resumed.
func TestWhatOthersChangeOfASuspendedKustomization(t *testing.T) {
	w := newWorld(t)
	templates := &listening{}
	w.templates = templates
	w.stop()
	w.start()
	revision := w.commit(map[string]string{"app/config.yaml": configMaps(3)})
	w.kustomization("web")
	w.ready("web", revision)
	shows := func(name string, change func(obj *unstructured.Unstructured)) {
		t.Helper()
		before := w.configMap(name)
		change(before.DeepCopy())
		templates.Changed(templatestore.KeyOf(before), before, w.configMap(name), false)
	}
	reports := func(want ...string) {
		t.Helper()
		w.until(fmt.Sprintf("%q are told of", want), func() (bool, string) {
			var got []string
			for _, e := range inventory.EditedIn(w.get("web").Status) {
				text := e.ID.Name
				if e.Gone {
					text += " gone"
				}
				got = append(got, text)
			}
			return cmp.Equal(want, got), fmt.Sprintf("%q", got)
		})
	}
	number := func(value string) func(obj *unstructured.Unstructured) {
		return func(obj *unstructured.Unstructured) { w.edit(obj, value, "data", "number") }
	}
	suspend := func(is bool) {
		t.Helper()
		w.change("web", func(spec *kustomizev1.KustomizationSpec) { spec.Suspend = is })
		w.seen(w.get("web"))
	}
	suspend(true)
	w.until("the loop knows that it is suspended", func() (bool, string) {
		shows("config-00", number("99"))
		shows("config-00", number("98"))
		return len(inventory.EditedIn(w.get("web").Status)) > 0, ""
	})
	reports("config-00")
	shows("config-01", func(obj *unstructured.Unstructured) {
		if err := w.Hub.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	})
	reports("config-00", "config-01 gone")
	w.stop()
	w.start()
	reports("config-00", "config-01 gone")
	suspend(false)
	w.until("all is as it was", func() (bool, string) {
		a, b := w.configMap("config-00"), w.configMap("config-01")
		if a == nil || b == nil {
			return false, "one is missing"
		}
		number, _, _ := unstructured.NestedString(a.Object, "data", "number")
		return number == "0", number
	})
	reports()
}
