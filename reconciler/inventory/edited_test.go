package inventory_test

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

func TestWhatOthersChangedIsRecorded(t *testing.T) {
	edits := []inventory.Edited{{ID: entry("shop_a__ConfigMap", "v1").ID, Was: "1"}, {ID: entry("shop_key__Secret", "v1").ID, Was: "2", Gone: true, Nameless: true}}
	status := kustomizev1.KustomizationStatus{History: meta.History{{Metadata: map[string]string{"revision": "2"}}, {Metadata: map[string]string{"revision": "1", gitopsv1alpha1.EditedKey: "x"}}}}
	inventory.RecordEdited(&status, edits)
	if diff := cmp.Diff(edits, inventory.EditedIn(status)); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	inventory.RecordEdited(&status, nil)
	want := meta.History{{Metadata: map[string]string{"revision": "2"}}, {Metadata: map[string]string{"revision": "1"}}}
	if diff := cmp.Diff(want, status.History); diff != "" {
		t.Errorf("once all is as it was (-want +got):\n%s", diff)
	}
	for _, text := range []string{"x", `{"id":1}`, `[{"id":"oops"}]`} {
		status.History.Latest().Metadata[gitopsv1alpha1.EditedKey] = text
		if got := inventory.EditedIn(status); len(got) != 0 {
			t.Errorf("%s: %v, want none", text, got)
		}
	}
}
