package cascadingdeletion_test

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/reconciler/apply/cascadingdeletion"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

func entry(kind, name string) inventory.Entry {
	id := inventory.ID{Namespace: "team", Name: name, GroupKind: schema.GroupKind{Kind: kind}}
	if kind == kustomizev1.KustomizationKind {
		id.GroupKind.Group = kustomizev1.GroupVersion.Group
	}
	return inventory.Entry{ID: id, Version: "v1"}
}

// kustomization is one that another one applied, and that owns entries.
func kustomization(name, by string, prune bool, owns ...inventory.Entry) *kustomizev1.Kustomization {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: inventory.OwnerLabels(client.ObjectKey{Namespace: "team", Name: by})}}
	ks.Spec.Prune, ks.Status.Inventory = prune, inventory.Record(owns)
	return ks
}

func TestWhatGoesWithAKustomization(t *testing.T) {
	child, config := entry("Kustomization", "child"), entry("ConfigMap", "a")
	for name, tc := range map[string]struct {
		objects []client.Object
		leaves  inventory.Entry
		want    []string
	}{
		"what it owns":                       {[]client.Object{kustomization("child", "root", true, config)}, child, []string{"a"}},
		"and what those own that it applied": {[]client.Object{kustomization("child", "root", true, config, entry("Kustomization", "grandchild")), kustomization("grandchild", "child", true, entry("ConfigMap", "b"))}, child, []string{"a", "grandchild", "b"}},
		"nothing where it does not prune":    {[]client.Object{kustomization("child", "root", false, config)}, child, nil},
		"nothing of one that is another's":   {[]client.Object{kustomization("child", "other", true, config)}, child, nil},
		"one that applies itself has an end": {[]client.Object{kustomization("child", "root", true, entry("Kustomization", "child"))}, child, []string{"child"}},
		"nothing of one that is gone":        {nil, child, nil},
		"nothing with what is none":          {nil, config, nil},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.objects...).Build()
			found, err := cascadingdeletion.Descendants(t.Context(), hub, client.ObjectKey{Namespace: "team", Name: "root"}, []inventory.Entry{tc.leaves})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, id := range found[tc.leaves.ID] {
				got = append(got, id.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("goes with it (-want +got):\n%s", diff)
			}
		})
	}
}
