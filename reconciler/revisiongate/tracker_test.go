package revisiongate

import (
	"context"
	"slices"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

var shop = client.ObjectKey{Namespace: "team", Name: "shop"}

// fakeTemplates has the templates that it holds.
type fakeTemplates map[string]*unstructured.Unstructured

func (s fakeTemplates) State(schema.GroupVersionKind) templatestore.State {
	return templatestore.Synced
}

func (s fakeTemplates) Get(_ context.Context, key templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error) {
	if obj := s[key.Name]; obj != nil {
		return obj, templatestore.Present, nil
	}
	return nil, templatestore.Absent, nil
}

// web is the template that overrides mean.
func web() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "team", "name": "web"}}}
	obj.SetLabels(inventory.OwnerLabels(shop))
	return obj
}

// rule returns a version of an override for all Deployments, which Kustomization shop applied.
func rule(name, version string) *policyv1alpha1.OverridePolicy {
	return &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, ResourceVersion: version, Labels: inventory.OwnerLabels(shop)},
		Spec:       policyv1alpha1.OverrideSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}},
	}
}

// stating is Kustomization shop as it says that it is being switched.
func stating() *kustomizev1.Kustomization {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}
	ks.Status.Conditions = []metav1.Condition{{Type: Condition, Status: metav1.ConditionTrue}}
	return ks
}

// counting are the versions of the overrides that count for web, or "unknown".
func counting(t *Tracker) []string {
	found, _, known := t.Overrides(selector.ResourceOf(web()))
	if !known {
		return []string{"unknown"}
	}
	var out []string
	for _, o := range found {
		out = append(out, o.GetName()+" "+o.GetResourceVersion())
	}
	return out
}

func TestOverridesOfARevisionCountAtTheSameTime(t *testing.T) {
	tracker := New(nil, fakeTemplates{})
	var reported []string
	tracker.Listen(Listener{
		Override: func(versions ...policyv1alpha1.Override) {
			reported = append(reported, "override "+versions[0].GetName())
		},
		Ending: func(_ client.ObjectKey, versions ...policyv1alpha1.Override) {
			reported = append(reported, "ending "+versions[0].GetName())
		},
		Ended: func(owner client.ObjectKey) { reported = append(reported, "ended "+owner.Name) },
	})
	for _, name := range []string{"changes", "goes"} {
		tracker.hear(nil, rule(name, "1"), true)
	}
	tracker.Begin(shop, All)
	tracker.observe(t.Context(), shop, stating(), false)
	tracker.hear(rule("changes", "1"), rule("changes", "2"), false)
	tracker.hear(nil, rule("new", "3"), false)
	tracker.hear(rule("goes", "1"), nil, false)
	if diff := cmp.Diff([]string{"changes 1", "goes 1"}, counting(tracker)); diff != "" {
		t.Errorf("what counts meanwhile (-want +got):\n%s", diff)
	}
	tracker.End(t.Context(), shop, nil)
	if diff := cmp.Diff([]string{"changes 1", "goes 1"}, counting(tracker)); diff != "" {
		t.Errorf("what counts while the control plane still says so (-want +got):\n%s", diff)
	}
	reported = nil
	tracker.observe(t.Context(), shop, &kustomizev1.Kustomization{}, false)
	if diff := cmp.Diff([]string{"changes 2", "new 3"}, counting(tracker)); diff != "" {
		t.Errorf("what counts then (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ending changes", "ending new", "ending goes", "ended shop"}, reported); diff != "" {
		t.Errorf("what is told (-want +got):\n%s", diff)
	}
}

func TestASwitchThatBeganElsewhereHoldsWhatItTouches(t *testing.T) {
	tracker := New(nil, fakeTemplates{})
	tracker.hear(nil, rule("one", "2"), true) // some of them are written
	tracker.observe(t.Context(), shop, stating(), false)
	if diff := cmp.Diff([]string{"unknown"}, counting(tracker)); diff != "" {
		t.Errorf("what counts (-want +got):\n%s", diff)
	}
	if owner, switching := tracker.Switching(web()); !switching || owner != shop {
		t.Errorf("being switched is %s, %t", owner, switching)
	}
	tracker.Begin(shop, All)
	tracker.End(t.Context(), shop, nil)
	tracker.observe(t.Context(), shop, &kustomizev1.Kustomization{}, false)
	if diff := cmp.Diff([]string{"one 2"}, counting(tracker)); diff != "" {
		t.Errorf("what counts once it ended (-want +got):\n%s", diff)
	}
}

func TestWhatIsNotSwitched(t *testing.T) {
	for name, change := range map[string]func(*kustomizev1.Kustomization){
		"one that is suspended":     func(ks *kustomizev1.Kustomization) { ks.Spec.Suspend = true },
		"one that is being deleted": func(ks *kustomizev1.Kustomization) { ks.DeletionTimestamp = ptr.To(metav1.Now()) },
		"one that says nothing":     func(ks *kustomizev1.Kustomization) { ks.Status.Conditions = nil },
		"one that says that it is not": func(ks *kustomizev1.Kustomization) {
			ks.Status.Conditions[0].Status = metav1.ConditionFalse
		},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := New(nil, fakeTemplates{})
			tracker.observe(t.Context(), shop, stating(), false)
			ks := stating()
			change(ks)
			tracker.observe(t.Context(), shop, ks, false)
			if _, switching := tracker.Switching(web()); switching {
				t.Error("it is being switched")
			}
		})
	}
}

func TestWhatLeftKeepsItsOverrides(t *testing.T) {
	tracker := New(nil, fakeTemplates{"web": web()})
	tracker.hear(nil, rule("one", "1"), true)
	tracker.Begin(shop, All)
	tracker.hear(rule("one", "1"), rule("one", "2"), false)
	gvk := web().GroupVersionKind()
	entry := inventory.Entry{ID: inventory.IDOf(web()), Version: gvk.Version}
	tracker.End(t.Context(), shop, []inventory.Entry{entry})
	if diff := cmp.Diff([]string{"one 1"}, counting(tracker)); diff != "" {
		t.Errorf("what counts for it (-want +got):\n%s", diff)
	}
	ks := &kustomizev1.Kustomization{}
	ks.Status.History = meta.History{{Metadata: map[string]string{gitopsv1alpha1.LeavingKey: entry.ID.String()}}}
	tracker.observe(t.Context(), shop, ks, false)
	if _, _, stays := tracker.Left(web()); !stays {
		t.Error("it is not leaving any more, though the status says so")
	}
	ended := 0
	tracker.Listen(Listener{Ended: func(client.ObjectKey) { ended++ }})
	for _, suspended := range []bool{true, false} {
		again := ks.DeepCopy()
		again.Spec.Suspend = suspended
		tracker.observe(t.Context(), shop, again, false)
		if _, left, stays := tracker.Left(web()); stays == suspended || !left {
			t.Errorf("suspended %t: it has left: %t, stays as it stands: %t", suspended, left, stays)
		}
	}
	if ended != 1 {
		t.Errorf("%d times those who carry it were told that it does not leave any more, want once: as it was suspended", ended)
	}
	tracker.observe(t.Context(), shop, &kustomizev1.Kustomization{}, false)
	if _, left, _ := tracker.Left(web()); left {
		t.Error("it has left a revision that it is part of")
	}
	if diff := cmp.Diff([]string{"one 2"}, counting(tracker)); diff != "" {
		t.Errorf("what counts for it once it is wanted again (-want +got):\n%s", diff)
	}
	tracker.observe(t.Context(), shop, ks, false) // as a start finds it
	if diff := cmp.Diff([]string{"unknown"}, counting(tracker)); diff != "" {
		t.Errorf("what counts after a restart (-want +got):\n%s", diff)
	}
}

// What leaves a Kustomization that is not switched keeps its overrides as well: it may have to move before what replaces it is healthy.
func TestWhatLeavesWithoutASwitchKeepsItsOverrides(t *testing.T) {
	for first, want := range map[bool]string{false: "one 1", true: "unknown"} {
		tracker := New(nil, fakeTemplates{"web": web()})
		version := func(number string) *policyv1alpha1.OverridePolicy {
			of := rule("one", number)
			of.Labels = nil // of somebody
			return of
		}
		tracker.hear(nil, version("1"), true)
		ks := made(shop, client.ObjectKey{})
		ks.Status.Inventory = inventory.Record([]inventory.Entry{{ID: inventory.IDOf(web()), Version: web().GroupVersionKind().Version}})
		ks.Status.History = meta.History{{Metadata: map[string]string{gitopsv1alpha1.LeavingKey: inventory.IDOf(web()).String()}}}
		tracker.observe(t.Context(), shop, ks, first)
		tracker.hear(version("1"), version("2"), false)
		tracker.observe(t.Context(), shop, ks, false)
		if diff := cmp.Diff([]string{want}, counting(tracker)); diff != "" {
			t.Errorf("known before the watch began: %t; what counts (-want +got):\n%s", first, diff)
		}
	}
}

// Which overrides counted for what leaves is not known either while another Kustomization has one for it that a replica
// before began to switch.
func TestWhatLeavesWhileAnotherOneIsSwitched(t *testing.T) {
	tracker := New(nil, fakeTemplates{"web": web()})
	of := rule("of-shelf", "2")
	of.Labels = inventory.OwnerLabels(shelf)
	tracker.hear(nil, of, true)
	tracker.observe(t.Context(), shelf, stating(), false)
	tracker.Begin(shop, All)
	tracker.End(t.Context(), shop, []inventory.Entry{{ID: inventory.IDOf(web()), Version: web().GroupVersionKind().Version}})
	for range 2 {
		if diff := cmp.Diff([]string{"unknown"}, counting(tracker)); diff != "" {
			t.Errorf("what counts for it (-want +got):\n%s", diff)
		}
		tracker.observe(t.Context(), shelf, &kustomizev1.Kustomization{}, false)
	}
}

// What left a revision before its Kustomization was deleted goes with that, and stays as it was until then.
func TestWhatLeftOneThatIsBeingDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*kustomizev1.Kustomization)
		want   bool
	}{
		"one that deletes what it applied": {func(*kustomizev1.Kustomization) {}, true},
		"one that leaves what it applied":  {func(ks *kustomizev1.Kustomization) { ks.Spec.DeletionPolicy = kustomizev1.DeletionPolicyOrphan }, false},
		"one that is suspended":            {func(ks *kustomizev1.Kustomization) { ks.Spec.Suspend = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.Now())}}
			ks.Spec.Prune = true
			ks.Status.History = meta.History{{Metadata: map[string]string{gitopsv1alpha1.LeavingKey: inventory.IDOf(web()).String()}}}
			tc.change(ks)
			tracker := New(nil, fakeTemplates{})
			tracker.observe(t.Context(), shop, ks, false)
			if _, _, stays := tracker.Left(web()); stays != tc.want {
				t.Errorf("it stays as it stands: %t", stays)
			}
			tracker.observe(t.Context(), shop, nil, false)
			if _, left, _ := tracker.Left(web()); left {
				t.Error("it has left one that is gone")
			}
		})
	}
}

func TestUnseen(t *testing.T) {
	stored := web()
	stored.SetResourceVersion("7")
	tracker := New(nil, fakeTemplates{"web": stored})
	tracker.hear(nil, rule("one", "5"), true)
	version := func(obj client.Object, kind schema.GroupVersionKind, version string) Version {
		return Version{GroupVersionKind: kind, ObjectKey: client.ObjectKeyFromObject(obj), ResourceVersion: version}
	}
	deployment, ofRule := web().GroupVersionKind(), policyv1alpha1.GroupVersion.WithKind("OverridePolicy")
	gone := version(rule("one", ""), ofRule, "")
	gone.Gone = true
	for name, tc := range map[string]struct {
		version Version
		unseen  bool
	}{
		"a template as it is":              {version: version(stored, deployment, "7")},
		"one that was later changed":       {version: version(stored, deployment, "6")},
		"one that is written just now":     {version: version(stored, deployment, "8"), unseen: true},
		"one that is made just now":        {version: version(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "api"}}, deployment, "8"), unseen: true},
		"an override as it is":             {version: version(rule("one", ""), ofRule, "5")},
		"an override written just now":     {version: version(rule("one", ""), ofRule, "6"), unseen: true},
		"an override made just now":        {version: version(rule("two", ""), ofRule, "6"), unseen: true},
		"an override that is not gone yet": {version: gone, unseen: true},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.version.Gone {
				tc.version.UID = rule("one", "").GetUID()
			}
			unseen, err := tracker.Unseen(t.Context(), []Version{tc.version})
			if err != nil || len(unseen) > 0 != tc.unseen {
				t.Errorf("unseen are %v, %v", unseen, err)
			}
		})
	}
}

func TestWhatWaitsIsLookedAtOnce(t *testing.T) {
	tracker := New(nil, fakeTemplates{})
	var put []string
	waiting := NewWaiting(tracker, func(item string) { put = append(put, item) })
	tracker.Begin(shop, All)
	still := func() bool { return tracker.IsSwitching(shop) }
	waiting.Add(shop, "a", still)
	waiting.Add(shop, "a", still)
	waiting.Add(shop, "b", still)
	if len(put) > 0 {
		t.Errorf("looked at before: %v", put)
	}
	tracker.End(t.Context(), shop, nil)
	waiting.Add(shop, "late", still)
	slices.Sort(put)
	if diff := cmp.Diff([]string{"a", "b", "late"}, put); diff != "" {
		t.Errorf("looked at (-want +got):\n%s", diff)
	}
}
