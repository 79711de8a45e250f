package cascadingdeletion

import (
	"context"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestOnlyWhatIsThereIsLost: what a Kustomization records and is gone already, alone or with its namespace, does not go
// with it.
func TestOnlyWhatIsThereIsLost(t *testing.T) {
	entry := func(namespace, name, group, kind string) inventory.Entry {
		return inventory.Entry{ID: inventory.ID{Namespace: namespace, Name: name, GroupKind: schema.GroupKind{Group: group, Kind: kind}}, Version: "v1"}
	}
	claim, web, settings := entry("pay", "ledger", "", "PersistentVolumeClaim"), entry("pay", "api", "apps", "Deployment"), entry("pay", "settings", "", "ConfigMap")
	child := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "pay-api"}, Spec: kustomizev1.KustomizationSpec{Prune: true}}
	child.Status.Inventory = inventory.Record([]inventory.Entry{claim, web, settings})
	removed := []inventory.Entry{{ID: inventory.OfKustomization(client.ObjectKeyFromObject(child)), Version: "v1"}}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pay"}}
	goes := space.DeepCopy()
	goes.Finalizers, goes.DeletionTimestamp = []string{"test/wait"}, &metav1.Time{Time: time.Now()}
	ledger := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "pay", Name: "ledger"}}
	api := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "pay", Name: "api"}}
	for name, tc := range map[string]struct {
		hub  []client.Object
		want inventory.Loss
	}{
		"all is there":              {[]client.Object{space, ledger, api}, inventory.Loss{Within: 3, Runs: 1, Precious: true, Contained: []inventory.ID{claim.ID}}},
		"the claim is gone":         {[]client.Object{space, api}, inventory.Loss{Within: 2, Runs: 1}},
		"the namespace is gone":     {nil, inventory.Loss{}},
		"the namespace is about to": {[]client.Object{goes, ledger, api}, inventory.Loss{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Counter{hub: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(append(tc.hub, child)...).Build()}
			kept := func(context.Context, *kustomizev1.Kustomization, []inventory.Entry) (map[inventory.ID]bool, error) {
				return nil, nil
			}
			got, err := c.Of(t.Context(), removed, Revision{Kept: kept, Places: true})
			if err != nil {
				t.Fatal(err)
			}
			tc.want.ID = removed[0].ID
			if diff := cmp.Diff([]inventory.Loss{tc.want}, got); diff != "" {
				t.Errorf("losses (-want +got):\n%s", diff)
			}
		})
	}
}
