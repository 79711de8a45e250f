package situation_test

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestKustomizationOfNamespaces: a Kustomization that only has Namespaces counts their clusters; any other counts those of its
// other templates.
func TestKustomizationOfNamespaces(t *testing.T) {
	space := func(cluster, name string, applied metav1.ConditionStatus) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + cluster, Name: name, Generation: 1}}
		w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + name + `"}}`)}}}
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: applied, ObservedGeneration: 1, Message: "no quota"}}
		return w
	}
	ks := func(name string, owns ...inventory.ID) *kustomizev1.Kustomization {
		out := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		var entries []inventory.Entry
		for _, id := range owns {
			entries = append(entries, inventory.Entry{ID: id, Version: "v1"})
		}
		out.Status.Inventory = inventory.Record(entries)
		return out
	}
	namespace := func(name string) inventory.ID {
		return inventory.ID{Name: name, GroupKind: schema.GroupKind{Kind: "Namespace"}}
	}
	s := situation.NewSurvey(now, "")
	s.Cluster(member("east"), time.Time{})
	s.Cluster(member("west"), time.Time{})
	s.Kustomization(ks("spaces", namespace("shop"), namespace("bank")))
	s.Kustomization(ks("one", namespace("bank")))
	s.Kustomization(ks("none", namespace("lost")))
	for _, w := range []*workv1alpha1.Work{space("east", "shop", metav1.ConditionTrue), space("west", "shop", metav1.ConditionFalse), space("west", "bank", metav1.ConditionTrue)} {
		situation.Unbound(s, w)
	}
	got := map[string]situation.Count{}
	for _, k := range s.Fleet().Kustomizations {
		got[k.Name] = k.Clusters
	}
	want := map[string]situation.Count{"spaces": {Ready: 1, Total: 2}, "one": {Ready: 1, Total: 1}, "none": {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
