package health_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// TestWhatLeavesWithoutBeingNamed: what clusters have yet to remove is found by the labels of its owner.
func TestWhatLeavesWithoutBeingNamed(t *testing.T) {
	child := client.ObjectKey{Namespace: "team", Name: "chi"}
	childID := inventory.ID{Namespace: "team", Name: "chi", GroupKind: schema.GroupKind{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}}
	cm := object(t, config)
	named := func(name string, change ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
		w := workWith(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+name+`","namespace":"shop"}}`, owner, change...)
		return w
	}
	broken := func(w *workv1alpha1.Work) {
		w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"metadata":[{"name":"` + owner.Name + `"}]}`)}}}
	}
	other := workWith(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"theirs","namespace":"shop"}}`, client.ObjectKey{Namespace: "team", Name: owner.Name + "-too"}, deleted)
	beneath := workWith(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"beneath","namespace":"shop"}}`, child, deleted)
	also := named("a", deleted)
	also.Namespace = "karmada-es-east"
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		named("b", deleted), named("a", deleted), also, named("gone"), workWith(t, config, owner), named("broken", deleted, broken), other, beneath,
	).Build()
	reader := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{templatestore.KeyOf(cm): cm}})
	for name, tc := range map[string]struct {
		removed []inventory.ID
		want    []string
	}{
		"of the Kustomization":            {nil, []string{"a", "b", "gone"}},
		"and of one that left it as well": {[]inventory.ID{childID}, []string{"a", "b", "beneath", "gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			ids, err := reader.Leaving(t.Context(), owner, tc.removed)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, id := range ids {
				got = append(got, id.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("leaves (-want +got):\n%s", diff)
			}
		})
	}
}
