package situation_test

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
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

// TestNamespaceBeingDeleted: a namespace that is being deleted is told at once where a Kustomization loses something with
// it, and whether it is made again; what goes with it runs in no cluster that counts.
func TestNamespaceBeingDeleted(t *testing.T) {
	space := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "shop", Generation: 1}}
	space.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)}}}
	space.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	shop := inventory.ID{Name: "shop", GroupKind: schema.GroupKind{Kind: "Namespace"}}
	web := inventory.ID{Name: "web", Namespace: "shop", GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}}
	deleted := func(message, next string) []situation.Problem {
		return []situation.Problem{{State: situation.Progressing, Kind: "Namespace", Name: "shop", Message: message, Next: next}}
	}
	for name, tc := range map[string]struct {
		owns             []inventory.ID
		stays            bool
		suspended, going bool
		asked            time.Duration
		want             []situation.Problem
		clusters         situation.Count
	}{
		"it is not being deleted": {owns: []inventory.ID{shop, web}, stays: true, clusters: situation.Count{Ready: 1, Total: 1}},
		"it is made again": {owns: []inventory.ID{shop, web}, asked: 2 * time.Second,
			want: deleted("being deleted, with all that is in it; Kustomization team/web makes it again then", "wait until it is gone")},
		"it takes long": {owns: []inventory.ID{shop, web}, asked: time.Minute,
			want: deleted("being deleted for 60s, and not gone; Kustomization team/web makes it again then", "free or delete what is left in it: then it goes by itself")},
		"nobody makes it again": {owns: []inventory.ID{web}, asked: 2 * time.Second,
			want: deleted("being deleted, with all that is in it", "wait until it is gone; Kustomization team/web has objects in it: create it again then, or commit it there")},
		"the Kustomization is suspended":                {owns: []inventory.ID{shop, web}, suspended: true, asked: 2 * time.Second},
		"the Kustomization is being deleted, too":       {owns: []inventory.ID{shop, web}, going: true, asked: 2 * time.Second},
		"the Kustomization has nothing to do with that": {asked: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
			ks.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
			var entries []inventory.Entry
			for _, id := range tc.owns {
				entries = append(entries, inventory.Entry{ID: id, Version: "v1"})
			}
			ks.Status.Inventory, ks.Spec.Suspend = inventory.Record(entries), tc.suspended
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
			if tc.going {
				ks.DeletionTimestamp = &metav1.Time{Time: now}
			}
			if !tc.stays {
				ns.DeletionTimestamp = &metav1.Time{Time: now.Add(-tc.asked)}
			}
			s := situation.NewSurvey(now, "")
			s.Cluster(member("east"), time.Time{})
			s.Kustomization(ks)
			s.Namespace(ns)
			situation.Unbound(s, space)
			got := s.Fleet()
			if diff := cmp.Diff(tc.want, got.Problems, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.clusters, got.Kustomizations[0].Clusters); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}
