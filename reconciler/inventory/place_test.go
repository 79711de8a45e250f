package inventory_test

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestInventoriesOfOtherClusters: an inventory counts where its objects are, and nowhere else.
func TestInventoriesOfOtherClusters(t *testing.T) {
	entry := inventory.Entry{ID: inventory.ID{Namespace: "shop", Name: "web", GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}}, Version: "v1"}
	east, renamed, west := inventory.Place{Server: "https://east", Secret: "east"}, inventory.Place{Server: "https://east", Secret: "new"}, inventory.Place{Server: "https://west", Secret: "east"}
	for name, tc := range map[string]struct {
		recorded, asked inventory.Place
		there           bool
	}{
		"of the control plane, asked for there":                             {there: true},
		"of the control plane, asked for in another cluster":                {asked: east},
		"of another cluster, asked for there":                               {recorded: east, asked: east, there: true},
		"of another cluster, by a Secret of another name":                   {recorded: east, asked: renamed, there: true},
		"of another cluster, by the same Secret, which leads elsewhere now": {recorded: east, asked: west},
		"of another cluster, asked for on the control plane":                {recorded: east},
	} {
		t.Run(name, func(t *testing.T) {
			ks := &kustomizev1.Kustomization{Status: kustomizev1.KustomizationStatus{History: meta.History{{Digest: "1"}}, Inventory: inventory.Record([]inventory.Entry{entry})}}
			inventory.RecordPlace(&ks.Status, tc.recorded)
			if diff := cmp.Diff(tc.recorded, inventory.PlaceOf(ks.Status)); diff != "" {
				t.Errorf("recorded (-want +got):\n%s", diff)
			}
			var want []inventory.Entry
			if tc.there {
				want = []inventory.Entry{entry}
			}
			got, err := inventory.In(ks, tc.asked)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("what is there (-want +got):\n%s; error %v", diff, err)
			}
		})
	}
}

// TestWhatIsRecordedOfAnotherCluster: what has yet to go from one cluster is not looked for in another one.
func TestWhatIsRecordedOfAnotherCluster(t *testing.T) {
	id := inventory.ID{Namespace: "shop", Name: "web", GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}}
	status := kustomizev1.KustomizationStatus{History: meta.History{{Digest: "1"}}}
	inventory.RecordRemoved(&status, []inventory.ID{id}, true)
	inventory.RecordPlace(&status, inventory.Place{})
	if got := inventory.Removed(status); len(got) != 1 {
		t.Errorf("in the same place %v is recorded", got)
	}
	inventory.RecordPlace(&status, inventory.Place{Server: "https://east", Secret: "east"})
	if got := inventory.Removed(status); len(got) != 0 {
		t.Errorf("in another place %v is recorded", got)
	}
}
