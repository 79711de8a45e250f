package switchover_test

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/apply/switchover"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// ownsOverride has a Kustomization hold an override that is on the control plane.
func ownsOverride(name string) func(*kustomizev1.Kustomization) {
	return func(ks *kustomizev1.Kustomization) {
		id := inventory.ID{Namespace: "team", Name: name, GroupKind: schema.GroupKind{Group: policyv1alpha1.GroupVersion.Group, Kind: "OverridePolicy"}}
		ks.Status.Inventory = inventory.Record([]inventory.Entry{{ID: id, Version: "v1alpha1"}})
	}
}

// Overrides that several Kustomizations hold for the same object go at the same time, where a commit retires all of these.
func TestWhoseRulesGoAlongside(t *testing.T) {
	ofA, ofB := overrides("team", "a"), overrides("team", "b")
	ofA.SetName("other-a")
	ofB.SetName("other-b")
	madeByRoot := func(ks *kustomizev1.Kustomization) { ks.Labels = inventory.OwnerLabels(key("root")) }
	keeps := map[string][]string{"root": {"x"}, "root makes": {"shelf"}}
	drops := map[string][]string{"root": {"x"}, "root makes": {"shop"}}
	root, stalled := named("root"), says(meta.StalledCondition, metav1.ConditionTrue, "PruneBlocked")
	for name, tc := range map[string]struct {
		others      []client.Object
		wants       map[string][]string
		after       time.Duration
		going, soon []client.ObjectKey
	}{
		"nobody else goes":                           {others: []client.Object{named("shelf", ownsOverride("other-a"))}},
		"another one goes":                           {others: []client.Object{named("shelf", ownsOverride("other-a"), deleted)}, going: []client.ObjectKey{key("shelf")}},
		"two more go":                                {others: []client.Object{named("shelf", ownsOverride("other-a"), deleted), named("crane", ownsOverride("other-a"), deleted)}, going: []client.ObjectKey{key("crane"), key("shelf")}},
		"another one goes, with one for others":      {others: []client.Object{named("shelf", ownsOverride("other-b"), deleted)}},
		"another one goes, and its rule is gone":     {others: []client.Object{named("shelf", ownsOverride("gone"), deleted)}},
		"another one goes, but the brake holds":      {others: []client.Object{named("shelf", ownsOverride("other-a"), deleted, stalled)}},
		"another one goes, and leaves all as it is":  {others: []client.Object{named("shelf", ownsOverride("other-a"), deleted, func(ks *kustomizev1.Kustomization) { ks.Spec.Prune = false })}},
		"a tenant's goes":                            {others: []client.Object{named("shelf", ownsOverride("other-a"), deleted, stranger)}},
		"another one is about to go":                 {others: []client.Object{root, named("shelf", ownsOverride("other-a"), madeByRoot)}, wants: drops, soon: []client.ObjectKey{key("shelf")}},
		"another one stays":                          {others: []client.Object{root, named("shelf", ownsOverride("other-a"), madeByRoot)}, wants: keeps},
		"who made another one cannot be built":       {others: []client.Object{root, named("shelf", ownsOverride("other-a"), madeByRoot)}},
		"who made another one goes":                  {others: []client.Object{named("root", deleted), named("shelf", ownsOverride("other-a"), madeByRoot)}, soon: []client.ObjectKey{key("shelf")}},
		"who made another one is gone":               {others: []client.Object{named("shelf", ownsOverride("other-a"), madeByRoot)}},
		"who made another one deletes nothing":       {others: []client.Object{named("root", func(ks *kustomizev1.Kustomization) { ks.Spec.Prune = false }), named("shelf", ownsOverride("other-a"), madeByRoot)}, wants: drops},
		"another one goes, but not in half a minute": {others: []client.Object{named("shelf", ownsOverride("other-a"), deleted)}, after: 30 * time.Second},
		"more than twenty go":                        {others: many(21, ownsOverride("other-a"), deleted)},
	} {
		t.Run(name, func(t *testing.T) {
			x := groups(clocktesting.NewFakePassiveClock(noon.Add(tc.after)), tc.wants, append(tc.others, named("shop", deleted), ofA.DeepCopy(), ofB.DeepCopy())...)
			got, err := switchover.NewRetirements(x, nil).Alongside(t.Context(), switchover.Retired{Of: named("shop", deleted), At: present, Rules: []*unstructured.Unstructured{overrides("team", "a")}})
			var going []client.ObjectKey
			for _, ks := range got.Going {
				going = append(going, client.ObjectKeyFromObject(ks))
			}
			if diff := cmp.Diff([][]client.ObjectKey{tc.going, tc.soon}, [][]client.ObjectKey{going, got.Soon}); diff != "" || err != nil {
				t.Errorf("error %v; going and soon (-want +got):\n%s", err, diff)
			}
		})
	}
}
