package cascadingdeletion

import (
	"context"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestWhatGoesOutsideOfTheFleet: a Kustomization takes along what it applied in a cluster outside of the fleet, and nothing that has the
// same name here.
func TestWhatGoesOutsideOfTheFleet(t *testing.T) {
	entry := func(group, kind string) inventory.Entry {
		return inventory.Entry{ID: inventory.ID{Namespace: "shop", Name: "web", GroupKind: schema.GroupKind{Group: group, Kind: kind}}, Version: "v1"}
	}
	claim := entry("", "PersistentVolumeClaim")
	child := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "child"}, Spec: kustomizev1.KustomizationSpec{Prune: true}}
	child.Status.History = meta.History{{Digest: "1"}}
	child.Status.Inventory = inventory.Record([]inventory.Entry{entry("", "ConfigMap"), claim, entry("apps", "Deployment")})
	inventory.RecordPlace(&child.Status, inventory.Place{Server: "https://prod", Secret: "prod"})
	keeps := child.DeepCopy()
	keeps.Name, keeps.Spec.Prune = "keeps", false
	c := &Counter{hub: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(child, keeps).Build()}
	kept := func(_ context.Context, ks *kustomizev1.Kustomization, owned []inventory.Entry) (map[inventory.ID]bool, error) {
		if len(owned) > 0 {
			t.Errorf("it is asked who takes over %v of %s", owned, ks.Name)
		}
		return nil, nil
	}
	var removed []inventory.Entry
	for _, ks := range []*kustomizev1.Kustomization{child, keeps} {
		removed = append(removed, inventory.Entry{ID: inventory.OfKustomization(client.ObjectKeyFromObject(ks)), Version: "v1"})
	}
	got, err := c.Of(t.Context(), removed, Revision{Kept: kept})
	if err != nil {
		t.Fatal(err)
	}
	want := []inventory.Loss{{ID: removed[0].ID, Within: 3, Runs: 1, Precious: true, Contained: []inventory.ID{claim.ID}}, {ID: removed[1].ID}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("losses (-want +got):\n%s", diff)
	}
}
