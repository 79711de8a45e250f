package revisiongate

import (
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
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

var shelf, store = client.ObjectKey{Namespace: "team", Name: "shelf"}, client.ObjectKey{Namespace: "team", Name: "store"}

// What Kustomizations wrote that have joined each other counts when the last of them is switched, and not before.
func TestWhatIsJoinedCountsAtTheSameTime(t *testing.T) {
	type step struct {
		do   func(*Tracker)
		want []string // what counts for web
	}
	end := func(owner client.ObjectKey) func(*Tracker) {
		return func(tr *Tracker) { tr.End(t.Context(), owner, nil) }
	}
	join := func(owner client.ObjectKey, others ...client.ObjectKey) func(*Tracker) {
		return func(tr *Tracker) { tr.Join(owner, others) }
	}
	before, all := []string{"of-shelf 1", "of-shop 1", "of-store 1"}, []string{"of-shelf 2", "of-shop 2", "of-store 2"}
	for name, tc := range map[string]struct {
		steps []step
		ended []string
	}{
		"the first joins the last": {
			steps: []step{{join(shop, shelf), before}, {end(shop), before}, {end(shelf), []string{"of-shelf 2", "of-shop 2", "of-store 1"}}, {end(store), all}},
			ended: []string{"shelf", "shop", "store"},
		},
		"each joins the other": {
			steps: []step{{join(shop, shelf), before}, {join(shelf, shop), before}, {end(shelf), before}, {end(shop), []string{"of-shelf 2", "of-shop 2", "of-store 1"}}, {end(store), all}},
			ended: []string{"shop", "shelf", "store"},
		},
		"three in a row": {
			steps: []step{{join(shop, shelf), before}, {end(shop), before}, {join(shelf, store), before}, {end(shelf), before}, {end(store), all}},
			ended: []string{"store", "shelf", "shop"},
		},
		"one that is not switched any more holds nobody": {
			steps: []step{{end(shelf), []string{"of-shelf 2", "of-shop 1", "of-store 1"}}, {join(shop, shelf), []string{"of-shelf 2", "of-shop 1", "of-store 1"}}, {end(shop), []string{"of-shelf 2", "of-shop 2", "of-store 1"}}, {end(store), all}},
			ended: []string{"shelf", "shop", "store"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := New(nil, fakeTemplates{})
			var ended []string
			tracker.Listen(Listener{Ended: func(owner client.ObjectKey) { ended = append(ended, owner.Name) }})
			version := func(owner client.ObjectKey, version string) *policyv1alpha1.OverridePolicy {
				out := rule("of-"+owner.Name, version)
				out.Labels = inventory.OwnerLabels(owner)
				return out
			}
			for _, owner := range []client.ObjectKey{shelf, shop, store} {
				tracker.hear(nil, version(owner, "1"), true)
				tracker.Begin(owner, All)
				tracker.hear(version(owner, "1"), version(owner, "2"), false)
			}
			for n, s := range tc.steps {
				s.do(tracker)
				if diff := cmp.Diff(s.want, counting(tracker)); diff != "" {
					t.Errorf("what counts after step %d (-want +got):\n%s", n, diff)
				}
			}
			if diff := cmp.Diff(tc.ended, ended); diff != "" {
				t.Errorf("what is told (-want +got):\n%s", diff)
			}
			if len(tracker.joined) > 0 {
				t.Errorf("still joined: %v", tracker.joined)
			}
		})
	}
}

// An override that goes with a Kustomization which is being deleted counts until those are switched that take what it held.
func TestWhatGoesWithOneThatHandsOver(t *testing.T) {
	tracker := New(nil, fakeTemplates{})
	tracker.hear(nil, rule("goes", "1"), true)
	tracker.Begin(shelf, All)
	tracker.Join(shop, []client.ObjectKey{shelf})
	tracker.hear(rule("goes", "1"), nil, false)
	tracker.observe(t.Context(), shop, nil, false)
	if diff := cmp.Diff([]string{"goes 1"}, counting(tracker)); diff != "" {
		t.Errorf("what counts before (-want +got):\n%s", diff)
	}
	tracker.End(t.Context(), shelf, nil)
	if diff := cmp.Diff([]string(nil), counting(tracker)); diff != "" {
		t.Errorf("what counts then (-want +got):\n%s", diff)
	}
}

func TestHandsOver(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*kustomizev1.Kustomization)
		want   bool
	}{
		"one that others have yet to take from":             {func(*kustomizev1.Kustomization) {}, true},
		"one that is not being deleted":                     {func(ks *kustomizev1.Kustomization) { ks.DeletionTimestamp = nil }, false},
		"one that was not being switched":                   {func(ks *kustomizev1.Kustomization) { ks.Status.Conditions = nil }, false},
		"one that is suspended":                             {func(ks *kustomizev1.Kustomization) { ks.Spec.Suspend = true }, false},
		"one of which others have taken all that they want": {func(ks *kustomizev1.Kustomization) { ks.Status.History = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			ks := stating()
			ks.DeletionTimestamp = ptr.To(metav1.Now())
			ks.Status.History = meta.History{{Metadata: map[string]string{gitopsv1alpha1.UndecidedKey: inventory.IDOf(web()).String()}}}
			tc.change(ks)
			if got := HandsOver(ks); got != tc.want {
				t.Errorf("hands over: %t", got)
			}
			tracker := New(nil, fakeTemplates{})
			tracker.observe(t.Context(), shop, ks, false)
			if got := tracker.IsSwitching(shop); got != (tc.want || ks.DeletionTimestamp == nil) {
				t.Errorf("is being switched: %t", got)
			}
		})
	}
}

// Of two Kustomizations that have joined each other one says first that it is switched. Whoever leads from then on
// has both be switched until the other one says so, too.
func TestTheNextLeaderKnowsWhatIsJoined(t *testing.T) {
	states := func(reason string, with ...string) *kustomizev1.Kustomization {
		ks := stating()
		ks.Status.Conditions[0].Reason, ks.Status.Conditions[0].Message = reason, Announcement("main@sha1:2", "sha256:2", with)
		return ks
	}
	for name, tc := range map[string]struct {
		shelf *kustomizev1.Kustomization
		want  bool
	}{
		"the other one has written all, and names it":      {states(ReasonWritten, "team/shop"), true},
		"the other one names another one":                  {states(ReasonWritten, "team/store"), false},
		"the other one names nobody":                       {states(ReasonWritten), false},
		"the other one still writes":                       {states(meta.ProgressingReason, "team/shop"), true},
		"the other one names it beside one that is hidden": {states(ReasonWritten, "of another namespace", "team/shop"), true},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := New(nil, fakeTemplates{})
			var ended []string
			tracker.Listen(Listener{Ended: func(owner client.ObjectKey) { ended = append(ended, owner.Name) }})
			of := rule("of-shop", "2")
			of.Labels = inventory.OwnerLabels(shop)
			tracker.hear(nil, of, true)
			tracker.observe(t.Context(), shop, &kustomizev1.Kustomization{}, false)
			tracker.observe(t.Context(), shelf, tc.shelf, false)
			before := []string{"of-shop 2"}
			if tc.want {
				before = []string{"unknown"}
			}
			if diff := cmp.Diff(before, counting(tracker)); diff != "" || tracker.IsSwitching(shop) != tc.want {
				t.Errorf("it is being switched: %t; what counts (-want +got):\n%s", tracker.IsSwitching(shop), diff)
			}
			ended = nil
			tracker.observe(t.Context(), shelf, &kustomizev1.Kustomization{}, false)
			if diff := cmp.Diff([]string{"of-shop 2"}, counting(tracker)); diff != "" || tracker.IsSwitching(shop) {
				t.Errorf("it is being switched: %t; what counts once the other one is switched (-want +got):\n%s", tracker.IsSwitching(shop), diff)
			}
			if slices.Contains(ended, "shop") != tc.want || len(tracker.joined) > 0 {
				t.Errorf("told of the end: %v; still joined: %v", ended, tracker.joined)
			}
		})
	}
}

// A Kustomization that joins another one only as the status of that says so waits for it until it is switched itself: by then it
// is known whether the other one is to be waited for.
func TestOneThatIsSwitchedAnewWaitsForThoseOnlyThatItJoins(t *testing.T) {
	for name, tc := range map[string]struct {
		joins []client.ObjectKey
		want  bool
	}{
		"it joins the other one":     {[]client.ObjectKey{shelf}, true},
		"the other one refuses":      {nil, false},
		"it joins itself and others": {[]client.ObjectKey{shop, store}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := New(nil, fakeTemplates{})
			ks := stating()
			ks.Status.Conditions[0].Reason, ks.Status.Conditions[0].Message = meta.ProgressingReason, Announcement("main@sha1:2", "sha256:2", []string{"team/shop"})
			tracker.observe(t.Context(), shelf, ks, false)
			tracker.End(t.Context(), shop, nil) // of a run that had nothing to switch
			if !tracker.IsSwitching(shop) {
				t.Error("it does not wait before it is switched itself")
			}
			tracker.Begin(shop, All)
			tracker.Join(shop, tc.joins)
			tracker.End(t.Context(), shop, nil)
			if got := tracker.IsSwitching(shop); got != tc.want {
				t.Errorf("it is being switched: %t", got)
			}
			tracker.observe(t.Context(), shelf, &kustomizev1.Kustomization{}, false)
			if tracker.IsSwitching(shop) || len(tracker.joined) > 0 || len(tracker.resumed) > 0 {
				t.Errorf("still joined: %v, %v", tracker.joined, tracker.resumed)
			}
		})
	}
}
