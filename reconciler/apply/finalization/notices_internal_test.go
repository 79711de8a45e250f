package finalization

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// What was still there when a run looked, and was taken by the time that it asked the others, is theirs, too: no later run says so.
func TestSuccessorsOf(t *testing.T) {
	id := func(name string) inventory.ID {
		return inventory.ID{Namespace: "shop", Name: name, GroupKind: schema.GroupKind{Kind: "ConfigMap"}}
	}
	shop := client.ObjectKey{Namespace: "team", Name: "shop"}
	var owned []inventory.Entry
	for _, name := range []string{"gone", "taken", "wanted", "nobodys"} {
		owned = append(owned, inventory.Entry{ID: id(name), Version: "v1"})
	}
	seen := applier.Observed{id("taken"): &unstructured.Unstructured{}, id("wanted"): &unstructured.Unstructured{}}
	got := successorsOf(owned, seen, siblings.Answer{
		Successors: map[inventory.ID]client.ObjectKey{id("gone"): shop, id("taken"): shop, id("wanted"): shop},
		Taken:      map[inventory.ID]bool{id("gone"): true, id("taken"): true},
	})
	want := map[inventory.ID]client.ObjectKey{id("gone"): shop, id("taken"): shop}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
