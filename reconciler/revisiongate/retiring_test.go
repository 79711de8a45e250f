package revisiongate

import (
	"context"
	"slices"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

var root, middle = client.ObjectKey{Namespace: "team", Name: "root"}, client.ObjectKey{Namespace: "team", Name: "middle"}

// made is a Kustomization that deletes what it holds, and that another one made.
func made(key, by client.ObjectKey, change ...func(*kustomizev1.Kustomization)) *kustomizev1.Kustomization {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if by.Name != "" {
		ks.Labels = inventory.OwnerLabels(by)
	}
	ks.Spec.Prune = true
	for _, f := range change {
		f(ks)
	}
	return ks
}

// dropping has Kustomizations have left the revision of one, and not be deleted yet.
func dropping(keys ...client.ObjectKey) func(*kustomizev1.Kustomization) {
	return func(ks *kustomizev1.Kustomization) {
		for _, key := range keys {
			ks.Status.History = meta.History{{Metadata: map[string]string{gitopsv1alpha1.LeavingKey: inventory.OfKustomization(key).String()}}}
		}
	}
}

func ending(ks *kustomizev1.Kustomization)    { ks.DeletionTimestamp = ptr.To(metav1.Now()) }
func suspended(ks *kustomizev1.Kustomization) { ks.Spec.Suspend = true }
func keeping(ks *kustomizev1.Kustomization)   { ks.Spec.Prune = false }
func stalled(ks *kustomizev1.Kustomization) {
	ks.Status.Conditions = []metav1.Condition{{Type: meta.StalledCondition, Status: metav1.ConditionTrue}}
}

// What a Kustomization holds that goes, or is about to, stays as it stands until then.
func TestWhatGoesWithItsKustomizationStays(t *testing.T) {
	type all = []*kustomizev1.Kustomization
	for name, tc := range map[string]struct {
		there all
		want  bool
	}{
		"who made it holds it":                          {all{made(root, client.ObjectKey{}), made(shop, root)}, false},
		"it has left the revision of who made it":       {all{made(root, client.ObjectKey{}, dropping(shop)), made(shop, root)}, true},
		"that is known before it is":                    {all{made(shop, root), made(root, client.ObjectKey{}, dropping(shop))}, true},
		"who made it is suspended":                      {all{made(root, client.ObjectKey{}, dropping(shop), suspended), made(shop, root)}, false},
		"who made it drops another one":                 {all{made(root, client.ObjectKey{}, dropping(middle)), made(shop, root)}, false},
		"one that did not make it drops it":             {all{made(root, client.ObjectKey{}, dropping(shop)), made(shop, middle)}, false},
		"it leaves what it holds":                       {all{made(root, client.ObjectKey{}, dropping(shop)), made(shop, root, keeping)}, false},
		"it is suspended":                               {all{made(root, client.ObjectKey{}, dropping(shop)), made(shop, root, suspended)}, false},
		"who made it has left the revision of another":  {all{made(root, client.ObjectKey{}, dropping(middle)), made(middle, root), made(shop, middle)}, true},
		"who made it leaves what it holds, and goes":    {all{made(root, client.ObjectKey{}, dropping(middle)), made(middle, root, keeping), made(shop, middle)}, false},
		"it is being deleted":                           {all{made(shop, client.ObjectKey{}, ending)}, true},
		"it is being deleted, and leaves what it holds": {all{made(shop, client.ObjectKey{}, ending, keeping)}, false},
		"the brake holds its deletion":                  {all{made(shop, client.ObjectKey{}, ending, stalled)}, false},
		"who made it is being deleted":                  {all{made(root, client.ObjectKey{}, ending), made(shop, root)}, true},
		"it claims to have made itself":                 {all{made(shop, shop)}, false},
		"two claim to have made each other":             {all{made(shop, middle), made(middle, shop)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := New(nil, fakeTemplates{})
			for _, ks := range tc.there {
				tracker.observe(t.Context(), client.ObjectKeyFromObject(ks), ks, false)
			}
			owner, left, stays := tracker.Left(web())
			if owner != shop || left != tc.want || stays != tc.want {
				t.Errorf("it left %v: %t, and stays: %t; want %t", owner, left, stays, tc.want)
			}
			if _, _, known := tracker.Overrides(selector.ResourceOf(web())); known == tc.want {
				t.Errorf("the overrides that count for it are known: %t", known)
			}
		})
	}
}

// What is held as its Kustomization goes is looked at anew once that does not go any more, or is gone.
func TestWhatDoesNotGoAnyMoreIsLookedAt(t *testing.T) {
	for name, tc := range map[string]struct {
		was, is *kustomizev1.Kustomization
		want    []string
	}{
		"who made it holds it again":          {made(root, client.ObjectKey{}, dropping(middle)), made(root, client.ObjectKey{}), []string{"middle", "root", "shop"}},
		"who made it is suspended":            {made(root, client.ObjectKey{}, dropping(middle)), made(root, client.ObjectKey{}, dropping(middle), suspended), []string{"middle", "root", "shop"}},
		"its maker is to leave what it holds": {made(middle, root), made(middle, root, keeping), []string{"middle", "shop"}},
		"the brake holds its deletion":        {made(shop, middle, ending), made(shop, middle, ending, stalled), []string{"shop"}},
		"it is gone":                          {made(shop, middle, ending), nil, []string{"shop"}},
		"nothing of that is another":          {made(root, client.ObjectKey{}, dropping(middle)), made(root, client.ObjectKey{}, dropping(middle)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := New(nil, fakeTemplates{})
			for _, ks := range []*kustomizev1.Kustomization{made(root, client.ObjectKey{}), made(middle, root), made(shop, middle), tc.was} {
				tracker.observe(t.Context(), client.ObjectKeyFromObject(ks), ks, false)
			}
			var ended []string
			tracker.Listen(Listener{Ended: func(owner client.ObjectKey) { ended = append(ended, owner.Name) }})
			tracker.observe(t.Context(), client.ObjectKeyFromObject(tc.was), tc.is, false)
			slices.Sort(ended)
			if diff := cmp.Diff(tc.want, ended); diff != "" {
				t.Errorf("of whom what is held is looked at (-want +got):\n%s", diff)
			}
		})
	}
}

// What goes with its Kustomization keeps the overrides that counted when that began to go: it may be moved to another cluster until then,
// as the one it is in fails. Which these were is not known after a start.
func TestWhatRetiresKeepsItsOverrides(t *testing.T) {
	held := func(ks *kustomizev1.Kustomization) {
		ks.Status.Inventory = inventory.Record([]inventory.Entry{{ID: inventory.IDOf(web()), Version: web().GroupVersionKind().Version}})
	}
	version := func(number string) *policyv1alpha1.OverridePolicy {
		of := rule("of-shelf", number)
		of.Labels = inventory.OwnerLabels(shelf)
		return of
	}
	drops, holds := made(root, client.ObjectKey{}, dropping(shop)), made(root, client.ObjectKey{})
	for name, tc := range map[string]struct {
		retire func(ctx context.Context, t *Tracker)
		want   string
	}{
		"its maker drops it":         {func(ctx context.Context, t *Tracker) { t.observe(ctx, root, drops, false) }, "of-shelf 1"},
		"somebody deletes it":        {func(ctx context.Context, t *Tracker) { t.observe(ctx, shop, made(shop, root, held, ending), false) }, "of-shelf 1"},
		"it was so before the start": {func(ctx context.Context, t *Tracker) { t.observe(ctx, root, drops, true) }, "unknown"},
		"its maker drops it with a new revision": {func(ctx context.Context, t *Tracker) {
			t.Begin(root, All)
			t.End(ctx, root, []inventory.Entry{{ID: inventory.OfKustomization(shop), Version: "v1"}})
		}, "of-shelf 1"},
		"it does not retire": {func(context.Context, *Tracker) {}, "of-shelf 2"},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := New(nil, fakeTemplates{"web": web()})
			tracker.hear(nil, version("1"), true)
			tracker.observe(t.Context(), root, holds, true)
			tracker.observe(t.Context(), shop, made(shop, root, held), true)
			tc.retire(t.Context(), tracker)
			tracker.hear(version("1"), version("2"), false)
			if diff := cmp.Diff([]string{tc.want}, counting(tracker)); diff != "" {
				t.Errorf("what counts (-want +got):\n%s", diff)
			}
			tracker.observe(t.Context(), shop, made(shop, root, held), false)
			tracker.observe(t.Context(), root, holds, false)
			if diff := cmp.Diff([]string{"of-shelf 2"}, counting(tracker)); diff != "" {
				t.Errorf("what counts once it stays (-want +got):\n%s", diff)
			}
		})
	}
}

// A Kustomization that leaves along with the end of a switch is known to leave before anything counts that was written, and so are those that
// it made.
func TestAKustomizationLeavesBeforeASwitchEnds(t *testing.T) {
	tracker := New(nil, fakeTemplates{"web": web()})
	tracker.hear(nil, rule("one", "1"), true)
	tracker.observe(t.Context(), root, made(root, client.ObjectKey{}), true)
	tracker.observe(t.Context(), middle, made(middle, root), true)
	tracker.observe(t.Context(), shop, made(shop, middle, func(ks *kustomizev1.Kustomization) {
		ks.Status.Inventory = inventory.Record([]inventory.Entry{{ID: inventory.IDOf(web()), Version: web().GroupVersionKind().Version}})
	}), true)
	tracker.Begin(root, All)
	var stays bool
	tracker.Listen(Listener{Ended: func(client.ObjectKey) { _, _, stays = tracker.Left(web()) }})
	tracker.End(t.Context(), root, []inventory.Entry{{ID: inventory.OfKustomization(middle), Version: "v1"}})
	if !stays {
		t.Error("what it holds does not stay as it stands")
	}
	tracker.hear(rule("one", "1"), rule("one", "2"), false)
	for _, when := range []string{"at its end", "with the next revision, while it has yet to be deleted"} {
		if diff := cmp.Diff([]string{"one 1"}, counting(tracker)); diff != "" {
			t.Errorf("what counts %s (-want +got):\n%s", when, diff)
		}
		tracker.Begin(root, All)
		tracker.End(t.Context(), root, []inventory.Entry{{ID: inventory.OfKustomization(middle), Version: "v1"}})
	}
}
