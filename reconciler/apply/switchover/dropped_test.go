package switchover_test

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/switchover"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// A rule that a commit changes may mean what a Kustomization holds that the same commit drops. It counts once who made that has dropped it:
// from then on that stays as it stands until it is deleted, which may wait for the one with the rule.
func TestOneThatIsDroppedIsWaitedForUntilItIs(t *testing.T) {
	type change = func(*kustomizev1.Kustomization)
	same := func(ks *kustomizev1.Kustomization) { ks.Labels["differs"] = "no" }
	now := at(present.Digest, present.Revision)
	drops := func(ks *kustomizev1.Kustomization) {
		ks.Status.History = meta.History{{Metadata: map[string]string{gitopsv1alpha1.LeavingKey: inventory.OfKustomization(key("shelf")).String()}}}
	}
	checks := []change{tries, says(meta.HealthyCondition, metav1.ConditionUnknown, meta.ProgressingReason)}
	ruling := func(ks *kustomizev1.Kustomization) {
		holds("OverridePolicy", "team")(ks)
		ks.Status.Inventory.Entries = append(ks.Status.Inventory.Entries, inventory.Record(configs("a")).Entries...)
	}
	for name, tc := range map[string]struct {
		shelf, root []change
		wants       []string // what root makes at the artifact
		with, waits bool
	}{
		"root has yet to drop it, and the commit changes its files":          {with: true, waits: true},
		"root has yet to drop it, and the commit changes nothing of it":      {shelf: []change{same}, with: true, waits: true},
		"so is one that has applied the commit":                              {shelf: []change{same, now}, with: true, waits: true},
		"root does not drop it, and the commit changes nothing of it":        {shelf: []change{same}, wants: []string{"shelf"}},
		"root refuses the commit":                                            {shelf: []change{same}, root: []change{tries, says(meta.ReadyCondition, metav1.ConditionFalse, "BuildFailed")}},
		"root deletes nothing":                                               {shelf: []change{same}, root: []change{func(ks *kustomizev1.Kustomization) { ks.Spec.Prune = false }}},
		"it would leave what it holds":                                       {shelf: []change{same, func(ks *kustomizev1.Kustomization) { ks.Spec.Prune = false }}},
		"it holds nothing that the rule means":                               {shelf: []change{same, owns("b")}},
		"root has dropped it, and waits for health":                          {root: append(checks, drops), with: true},
		"root has dropped it, and the commit changes nothing of it":          {shelf: []change{same}, root: append(checks, drops)},
		"root has dropped it, and it holds rules, which count until it goes": {shelf: []change{ruling}, root: append(checks, drops), with: true, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			madeByRoot := func(ks *kustomizev1.Kustomization) { ks.Labels = inventory.OwnerLabels(key("root")) }
			shelf := named("shelf", append([]change{madeByRoot, owns("a")}, tc.shelf...)...)
			x := groups(clocktesting.NewFakePassiveClock(noon), map[string][]string{"root": {"x"}, "root makes": tc.wants}, named("shop"), named("root", tc.root...), shelf)
			with, err := x.With(t.Context(), switchover.Query{Of: named("shop"), At: present, Changes: []applier.Change{{Desired: overrides("team", "a"), Action: applier.Configured, Owner: key("shop")}}})
			want := []client.ObjectKey(nil)
			if tc.with {
				want = []client.ObjectKey{key("shelf")}
			}
			if diff := cmp.Diff(want, with); diff != "" || err != nil {
				t.Errorf("error %v; with (-want +got):\n%s", err, diff)
			}
			if _, err := x.Await(t.Context(), switchover.Wait{Of: named("shop"), At: present, With: []client.ObjectKey{key("shelf")}}); tc.with && (err != nil) != tc.waits {
				t.Errorf("it is waited for: %v; want %t", err, tc.waits)
			}
		})
	}
}

// Who made a Kustomization decides whether that is waited for, and is heard of as well.
func TestWhoDecides(t *testing.T) {
	x := groups(clocktesting.NewFakePassiveClock(noon), nil, named("shelf", func(ks *kustomizev1.Kustomization) { ks.Labels = inventory.OwnerLabels(key("root")) }), named("crane"))
	if diff := cmp.Diff([]client.ObjectKey{key("crane"), key("gone"), key("root"), key("shelf")}, x.Deciding(t.Context(), []client.ObjectKey{key("crane"), key("gone"), key("shelf")})); diff != "" {
		t.Errorf("who is heard of (-want +got):\n%s", diff)
	}
}
