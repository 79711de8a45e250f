package commitstatus

import (
	"fmt"
	"slices"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestWhatIsLeftOfARemoval: a commit that removes something is pending until that is gone, on the control plane as well,
// and however much it is.
func TestWhatIsLeftOfARemoval(t *testing.T) {
	const hold = "kept by its finalizers: example.com/hold"
	id := func(kind, name string) inventory.ID {
		return inventory.ID{Namespace: "shop", Name: name, GroupKind: schema.GroupKind{Kind: kind}}
	}
	child := inventory.ID{Namespace: "shop", Name: "child", GroupKind: kustomizev1.GroupVersion.WithKind("Kustomization").GroupKind()}
	var many []inventory.ID
	var manyTerminating []inventory.Terminating
	for n := range 1203 {
		many = append(many, id("ConfigMap", fmt.Sprintf("c%04d", n)))
		manyTerminating = append(manyTerminating, inventory.Terminating{ID: many[n], UID: "1"})
	}
	cluster := []rollup.Part{{Object: "ConfigMap shop/b", Leaving: []rollup.ClusterPart{{Name: "west", State: rollup.Progressing, Reason: "not removed yet"}}}}
	for name, tc := range map[string]struct {
		removed     []inventory.ID
		terminating []inventory.Terminating
		inClusters  []rollup.Part
		want        string
	}{
		"nothing":                                              {want: "a success: 1/1 clusters ready"},
		"a finalizer keeps it":                                 {terminating: []inventory.Terminating{{ID: id("ConfigMap", "b"), UID: "1", Keeps: hold}}, want: "a pending: ConfigMap shop/b: not removed yet, " + hold},
		"a finalizer does, and a cluster":                      {terminating: []inventory.Terminating{{ID: id("ConfigMap", "b"), UID: "1", Keeps: hold}}, inClusters: cluster, want: "a pending: ConfigMap shop/b: not removed yet, " + hold},
		"it is about to go":                                    {terminating: []inventory.Terminating{{ID: id("Namespace", "b"), UID: "1"}}, want: "a pending: Namespace shop/b: not removed yet"},
		"text of a Secret is in its name":                      {terminating: []inventory.Terminating{{ID: id("Secret", "b"), UID: "1", Nameless: true}}, want: "a pending: Secret shop/***: not removed yet"},
		"a Kustomization":                                      {terminating: []inventory.Terminating{{ID: child, UID: "1"}}, want: "a pending: Kustomization shop/child: not removed yet"},
		"a Kustomization, with what may stay":                  {terminating: []inventory.Terminating{{ID: child, UID: "1"}, {ID: id("Namespace", "b"), UID: "1", Ahead: true}}, want: "a pending: Kustomization shop/child: not removed yet"},
		"a Kustomization, with what it has":                    {terminating: []inventory.Terminating{{ID: child, UID: "1"}}, inClusters: cluster, want: "a pending: 1/2 clusters ready: west waits for ConfigMap shop/b: not removed yet"},
		"more than is named":                                   {removed: many, inClusters: cluster, want: "a pending: 1203 objects: not removed from all clusters yet"},
		"more than is named, and none of those that are named": {removed: many, want: "a pending: 1203 objects: not removed from all clusters yet"},
		"more than is named on the control plane":              {terminating: manyTerminating, want: "a pending: 1203 objects: not removed from the control plane yet"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandover(t)
			h.fleet.left = tc.inClusters
			h.fetched(revisionA)
			h.fleet.is(rollup.Healthy, "")
			h.applied(revisionA)
			h.kustomization(func(ks *kustomizev1.Kustomization) {
				ks.Status.History = meta.History{{}}
				inventory.RecordRemoved(&ks.Status, tc.removed, true)
				inventory.RecordTerminating(&ks.Status, tc.terminating, true)
			})
			h.reconcile()
			if diff := cmp.Diff(tc.want, h.reported[len(h.reported)-1]); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			h.fleet.left = nil
			h.kustomization(func(ks *kustomizev1.Kustomization) {
				inventory.RecordRemoved(&ks.Status, nil, true)
				inventory.RecordTerminating(&ks.Status, nil, true)
			})
			h.reconcile()
			if last := h.reported[len(h.reported)-1]; last != "a success: 1/1 clusters ready" || slices.Contains(h.reported[:len(h.reported)-1], last) {
				t.Errorf("told %q, want a success once all is gone, and not before", h.reported)
			}
		})
	}
}

// TestWhatOthersChangeOfWhatIsSuspended: an object that nobody brings back is told by its name, and the commit is pending.
func TestWhatOthersChangeOfWhatIsSuspended(t *testing.T) {
	id := inventory.ID{Namespace: "shop", Name: "b", GroupKind: schema.GroupKind{Kind: "ConfigMap"}}
	for name, tc := range map[string]struct {
		edited  []inventory.Edited
		resumed bool
		want    string
	}{
		"nothing":                         {want: "a success: 1/1 clusters ready"},
		"one is changed":                  {edited: []inventory.Edited{{ID: id, Was: "1"}}, want: "a pending: ConfigMap shop/b: changed by hand while the Kustomization is suspended"},
		"one is deleted":                  {edited: []inventory.Edited{{ID: id, Was: "1", Gone: true}}, want: "a pending: ConfigMap shop/b: deleted by hand while the Kustomization is suspended"},
		"text of a Secret is in its name": {edited: []inventory.Edited{{ID: id, Was: "1", Nameless: true}}, want: "a pending: ConfigMap shop/***: changed by hand while the Kustomization is suspended"},
		"it goes on":                      {edited: []inventory.Edited{{ID: id, Was: "1"}}, resumed: true, want: "a success: 1/1 clusters ready"}, // its run is about to bring it back
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandover(t)
			h.green(revisionA)
			h.kustomization(func(ks *kustomizev1.Kustomization) {
				ks.Spec.Suspend = !tc.resumed
				ks.Status.History = meta.History{{}}
				inventory.RecordEdited(&ks.Status, tc.edited)
			})
			h.reconcile()
			if diff := cmp.Diff(tc.want, h.reported[len(h.reported)-1]); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}
