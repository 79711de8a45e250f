package termination_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/termination"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

var (
	web   = client.ObjectKey{Namespace: "team", Name: "web"}
	child = client.ObjectKey{Namespace: "team", Name: "child"}

	configMaps = schema.GroupKind{Kind: "ConfigMap"}
)

// fleet holds objects in clusters, without checking who applied them, and keeps claims.
type fleet struct {
	unheeded []rollup.Part
	holds    []inventory.ID
	keeps    []rollup.Part
}

func (f fleet) Remaining(_ context.Context, _ client.ObjectKey, removed []inventory.ID) ([]inventory.ID, error) {
	var out []inventory.ID
	for _, id := range removed {
		if slices.Contains(f.holds, id) {
			out = append(out, id)
		}
	}
	return out, nil
}

func (f fleet) Leaving(context.Context, client.ObjectKey, []inventory.ID) ([]inventory.ID, error) {
	return f.holds, nil
}

func (f fleet) Unheeded(context.Context, client.ObjectKey, []inventory.Entry) ([]rollup.Part, error) {
	return f.unheeded, nil
}

func (f fleet) Keeping(_ context.Context, _ client.ObjectKey, owned []inventory.Entry) ([]rollup.Part, error) {
	if len(owned) == 0 {
		return nil, nil
	}
	return f.keeps, nil
}

func idOf(name string) inventory.ID {
	return inventory.ID{Namespace: "shop", Name: name, GroupKind: configMaps}
}

// object is a ConfigMap of a Kustomization that is being deleted, or is not, where nothing holds it.
func object(name, uid string, by client.ObjectKey, finalizers ...string) *corev1.ConfigMap {
	out := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(uid), Labels: inventory.OwnerLabels(by), Finalizers: finalizers}}
	if len(finalizers) > 0 {
		out.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	}
	return out
}

// staying is a ConfigMap of the child that nobody has deleted yet.
func staying(name string, finalizers ...string) *corev1.ConfigMap {
	out := object(name, "1", child, finalizers...)
	out.DeletionTimestamp = nil
	return out
}

// seen returns an object as a revision found it before it deleted it.
func seen(name, uid string, finalizers ...string) (inventory.Entry, *unstructured.Unstructured) {
	obj := &unstructured.Unstructured{}
	obj.SetUID(types.UID(uid))
	obj.SetFinalizers(finalizers)
	return inventory.Entry{ID: idOf(name), Version: "v1"}, obj
}

func mapper() apimeta.RESTMapper {
	out := apimeta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion, kustomizev1.GroupVersion})
	out.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), apimeta.RESTScopeNamespace)
	out.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), apimeta.RESTScopeRoot)
	out.Add(kustomizev1.GroupVersion.WithKind("Kustomization"), apimeta.RESTScopeNamespace)
	return out
}

// TestWhatTheControlPlaneIsDeleting: what a revision deleted counts until that incarnation is gone.
func TestWhatTheControlPlaneIsDeleting(t *testing.T) {
	const hold = "example.com/hold"
	blocked := inventory.Terminating{ID: idOf("a"), UID: "1", Keeps: "kept by its finalizers: " + hold}
	ahead := inventory.Terminating{ID: idOf("a"), UID: "1", Ahead: true}
	childID := inventory.ID{Namespace: "team", Name: "child", GroupKind: kustomizev1.GroupVersion.WithKind("Kustomization").GroupKind()}
	leaves := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "child", UID: "9", Labels: inventory.OwnerLabels(web), Finalizers: []string{kustomizev1.KustomizationFinalizer}, DeletionTimestamp: &metav1.Time{Time: time.Now()},
	}}
	space := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "inner", UID: "5", Labels: inventory.OwnerLabels(web), Finalizers: []string{"test/wait"}, DeletionTimestamp: &metav1.Time{Time: time.Now()}},
		Status:     corev1.NamespaceStatus{Conditions: []corev1.NamespaceCondition{{Type: "NamespaceContentRemaining", Status: corev1.ConditionTrue, Message: "pods. has 1 resource instances"}}},
	}
	secret := object("a", "1", web, hold)
	secret.Annotations = map[string]string{"kustomize.flotilla.io/holds-secrets": "name"}
	spaceID := inventory.ID{Name: "inner", GroupKind: schema.GroupKind{Kind: "Namespace"}}
	for name, tc := range map[string]struct {
		hub     []client.Object
		removed []string                // by this revision, with a finalizer
		was     []inventory.Terminating // by those before
		inCache []inventory.ID          // clusters held it
		owned   []string
		beneath []string // went with the child that this revision removes
		want    []inventory.Terminating
		names   []inventory.ID // Kustomizations that have to be recorded as its owners
		after   time.Duration
	}{
		"nothing has left":                            {},
		"what was deleted is gone":                    {removed: []string{"a"}},
		"a finalizer holds it":                        {hub: []client.Object{object("a", "1", web, hold)}, removed: []string{"a"}, want: []inventory.Terminating{blocked}, after: 5 * time.Second},
		"it does so since an earlier revision":        {hub: []client.Object{object("a", "1", web, hold)}, was: []inventory.Terminating{blocked}, want: []inventory.Terminating{blocked}, after: 5 * time.Second},
		"another finalizer holds it by now":           {hub: []client.Object{object("a", "1", web, "example.com/b")}, was: []inventory.Terminating{blocked}, want: []inventory.Terminating{{ID: idOf("a"), UID: "1", Keeps: "kept by its finalizers: example.com/b"}}, after: 5 * time.Second},
		"one of its name is there, and stays":         {hub: []client.Object{object("a", "2", web)}, was: []inventory.Terminating{blocked}},
		"one of its name is being deleted":            {hub: []client.Object{object("a", "2", web, hold)}, was: []inventory.Terminating{blocked}},
		"it is another Kustomization's by now":        {hub: []client.Object{object("a", "1", client.ObjectKey{Namespace: "team", Name: "other"}, hold)}, was: []inventory.Terminating{blocked}},
		"it came back into the revision":              {hub: []client.Object{object("a", "1", web, hold)}, was: []inventory.Terminating{blocked}, owned: []string{"a"}},
		"clusters have let go of it before":           {hub: []client.Object{object("a", "1", web, hold)}, inCache: []inventory.ID{idOf("a")}, want: []inventory.Terminating{blocked}, after: 5 * time.Second},
		"it left with a Kustomization":                {hub: []client.Object{object("a", "1", child, hold)}, inCache: []inventory.ID{childID, idOf("a")}, want: []inventory.Terminating{blocked}, after: 5 * time.Second},
		"it names a Kustomization that has not left":  {hub: []client.Object{object("a", "1", child, hold)}, inCache: []inventory.ID{idOf("a")}},
		"a Kustomization has yet to remove its own":   {hub: []client.Object{leaves}, was: []inventory.Terminating{{ID: childID, UID: "9"}}, want: []inventory.Terminating{{ID: childID, UID: "9"}}, after: 5 * time.Second},
		"a Namespace that somebody's finalizer holds": {hub: []client.Object{space}, was: []inventory.Terminating{{ID: spaceID, UID: "5"}}, want: []inventory.Terminating{{ID: spaceID, UID: "5", Keeps: "kept by its finalizers: test/wait"}}, after: 5 * time.Second},
		"text of a Secret is in its name":             {hub: []client.Object{secret}, was: []inventory.Terminating{blocked}, want: []inventory.Terminating{{ID: idOf("a"), UID: "1", Keeps: blocked.Keeps, Nameless: true}}, after: 5 * time.Second},
		"it is about to go with a Kustomization":      {hub: []client.Object{leaves, staying("a", hold)}, beneath: []string{"a"}, want: []inventory.Terminating{ahead, {ID: childID, UID: "9"}}, after: 5 * time.Second},
		"it is so still":                              {hub: []client.Object{leaves, staying("a", hold)}, was: []inventory.Terminating{ahead, {ID: childID, UID: "9"}}, want: []inventory.Terminating{ahead, {ID: childID, UID: "9"}}, after: 5 * time.Second},
		"another Kustomization took it over":          {hub: []client.Object{leaves, object("a", "1", client.ObjectKey{Namespace: "team", Name: "other"})}, was: []inventory.Terminating{ahead, {ID: childID, UID: "9"}}, want: []inventory.Terminating{{ID: childID, UID: "9"}}, after: 5 * time.Second},
		"so, and nothing will keep it":                {hub: []client.Object{leaves, staying("a")}, beneath: []string{"a"}, want: []inventory.Terminating{{ID: childID, UID: "9"}}, after: 5 * time.Second},
		"it was to go with one that left it there":    {hub: []client.Object{staying("a", hold)}, was: []inventory.Terminating{blocked}, inCache: []inventory.ID{childID}},
		"it goes, and its Kustomization is gone":      {hub: []client.Object{object("a", "1", child, hold)}, was: []inventory.Terminating{blocked}, inCache: []inventory.ID{childID}, want: []inventory.Terminating{blocked}, names: []inventory.ID{childID}, after: 5 * time.Second},
		"its kind is not served any more":             {was: []inventory.Terminating{{ID: inventory.ID{Name: "x", GroupKind: schema.GroupKind{Group: "example.com", Kind: "Gadget"}}, UID: "1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.hub...).Build()
			ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name}}
			ks.Status.History = meta.History{{}}
			inventory.RecordTerminating(&ks.Status, tc.was, true)
			inventory.RecordRemoved(&ks.Status, tc.inCache, true)
			q := termination.Query{Of: ks, Seen: applier.Observed{}}
			for _, name := range tc.removed {
				e, obj := seen(name, "1", hold)
				q.Removed, q.Seen[e.ID] = append(q.Removed, e), obj
			}
			if len(tc.beneath) > 0 {
				gone := &unstructured.Unstructured{}
				gone.SetUID("9")
				gone.SetFinalizers([]string{kustomizev1.KustomizationFinalizer})
				q.Removed, q.Seen[childID], q.Beneath = append(q.Removed, inventory.Entry{ID: childID, Version: "v1"}), gone, map[inventory.ID][]inventory.ID{childID: {}}
				for _, name := range tc.beneath {
					q.Beneath[childID] = append(q.Beneath[childID], idOf(name))
				}
			}
			for _, name := range tc.owned {
				e, _ := seen(name, "1")
				q.Owned = append(q.Owned, e)
			}
			found, err := termination.New(fleet{}, hub, mapper()).Find(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			found.Record(&ks.Status)
			got, _ := inventory.TerminatingIn(ks.Status)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("being deleted (-want +got):\n%s", diff)
			}
			for _, id := range tc.names {
				if !slices.Contains(inventory.Removed(ks.Status), id) {
					t.Errorf("%v is forgotten", id)
				}
			}
			if found.After() != tc.after {
				t.Errorf("looks again after %s, want %s", found.After(), tc.after)
			}
			if some := termination.Some(ks.Status); some != (len(tc.want) > 0) {
				t.Errorf("something is left: %v", some)
			}
		})
	}
}

// TestMoreIsLeftThanIsNamed: an object that a cluster holds, or the control plane is deleting, does not count as gone
// only because the status is too small for its name.
func TestMoreIsLeftThanIsNamed(t *testing.T) {
	const many = 1500
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name}}
	ks.Status.History = meta.History{{}}
	q := termination.Query{Of: ks, Seen: applier.Observed{}}
	var clusters fleet
	var objects []client.Object
	for n := range many {
		e, obj := seen(fmt.Sprintf("c%04d", n), "1", "example.com/hold")
		q.Removed, q.Seen[e.ID] = append(q.Removed, e), obj
		clusters.holds = append(clusters.holds, e.ID)
		objects = append(objects, object(e.ID.Name, "1", web, "example.com/hold"))
	}
	step := func(what string, clusters fleet, hub []client.Object, wantRecorded, wantTerminating int) {
		t.Helper()
		live := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(hub...).Build()
		found, err := termination.New(clusters, live, mapper()).Find(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		found.Record(&ks.Status)
		q.Removed, q.Seen = nil, nil // from now on only the status records it
		terminating, beyond := inventory.TerminatingIn(ks.Status)
		if blocked := len(inventory.Removed(ks.Status)) + inventory.RemovedBeyond(ks.Status); blocked != wantRecorded || len(terminating)+beyond != wantTerminating {
			t.Errorf("%s: %d are held and %d being deleted, want %d and %d", what, blocked, len(terminating)+beyond, wantRecorded, wantTerminating)
		}
	}
	step("all are there", clusters, objects, many, many)
	step("those that are named are gone", fleet{holds: clusters.holds[1000:]}, objects[1000:], many-1000, many-1000)
	step("the last ones are left", fleet{holds: clusters.holds[many-2:]}, objects[many-1:], 2, 1)
	step("all are gone", fleet{}, nil, 0, 0)
}

// TestShown: a message lists what is being deleted, and replaces the list that it had before.
func TestShown(t *testing.T) {
	hub := fake.NewClientBuilder().WithScheme(scheme.New())
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name}}
	ks.Status.History = meta.History{{}}
	q := termination.Query{Of: ks, Seen: applier.Observed{}}
	for n := range 5 {
		e, obj := seen(fmt.Sprintf("c%d", n), "1", "example.com/hold")
		q.Removed, q.Seen[e.ID] = append(q.Removed, e), obj
		hub = hub.WithObjects(object(e.ID.Name, "1", web, "example.com/hold"))
	}
	found, err := termination.New(fleet{}, hub.Build(), mapper()).Find(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	const blocked = " (kept by its finalizers: example.com/hold)"
	want := "Applied revision: 2; still being deleted: ConfigMap/shop/c0" + blocked + ", ConfigMap/shop/c1" + blocked + ", ConfigMap/shop/c2" + blocked + " and 2 more"
	if got := found.Describe("Applied revision: 2; still being deleted: ConfigMap/shop/b"); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	if got := (termination.Found{}).Describe(want); got != want {
		t.Errorf("told %q where nobody has looked, want %q", got, want)
	}
	gone, err := termination.New(fleet{}, fake.NewClientBuilder().WithScheme(scheme.New()).Build(), mapper()).Find(t.Context(), termination.Query{Of: ks})
	if err != nil {
		t.Fatal(err)
	}
	if got := gone.Describe(want); got != "Applied revision: 2" {
		t.Errorf("told %q once all is gone", got)
	}
}

// TestWhatMayStayIsNotBeingDeleted: what a Kustomization that ends still holds may become another one's.
func TestWhatMayStayIsNotBeingDeleted(t *testing.T) {
	ends := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{
		Namespace: child.Namespace, Name: child.Name, UID: "9", Labels: inventory.OwnerLabels(web), Finalizers: []string{kustomizev1.KustomizationFinalizer}, DeletionTimestamp: &metav1.Time{Time: time.Now()},
	}}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "5", Labels: inventory.OwnerLabels(child)}}
	policy := staying("policy", "example.com/hold")
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name}}
	ks.Status.History = meta.History{{}}
	of := func(kind string, group string) schema.GroupKind { return schema.GroupKind{Group: group, Kind: kind} }
	inventory.RecordTerminating(&ks.Status, []inventory.Terminating{
		{ID: inventory.ID{Namespace: child.Namespace, Name: child.Name, GroupKind: of("Kustomization", kustomizev1.GroupVersion.Group)}, UID: "9"},
		{ID: inventory.ID{Name: "shop", GroupKind: of("Namespace", "")}, UID: "5"},
		{ID: idOf("policy"), UID: "1"},
	}, true)
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(ends, space, policy).Build()
	found, err := termination.New(fleet{}, hub, mapper()).Find(t.Context(), termination.Query{Of: ks})
	if err != nil {
		t.Fatal(err)
	}
	const want = "Applied revision: 2; still being deleted: Kustomization/team/child"
	if got := found.Describe("Applied revision: 2"); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// TestWhatIsNotTakenUpIsReported: it is reported, and checked again for as long as it is.
func TestWhatIsNotTakenUpIsReported(t *testing.T) {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name}}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
	find := func(unheeded ...rollup.Part) termination.Found {
		found, err := termination.New(fleet{unheeded: unheeded}, hub, mapper()).Find(t.Context(), termination.Query{Of: ks})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	const want = "Applied revision: 2; not taken up: ConfigMap shop/a (and 1 more) by PropagationPolicy shop/web before its next change, as that is Lazy"
	const by = "by PropagationPolicy shop/web before its next change, as that is Lazy"
	unheeded := find(rollup.Part{Object: "ConfigMap shop/b", Unheeded: by}, rollup.Part{Object: "ConfigMap shop/a", Unheeded: by})
	for _, message := range []string{"Applied revision: 2", want, "Applied revision: 2; not taken up: ConfigMap shop/c " + by} {
		if got := unheeded.Describe(message); got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	ks.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Message: want}}
	if unheeded.After() == 0 || !termination.Some(ks.Status) {
		t.Error("it is not looked at again")
	}
	if got := find().Describe(want); got != "Applied revision: 2" || find().After() != 0 {
		t.Errorf("told %q once it is taken up", got)
	}
}

// TestClaimsThatStayAreReported: they are reported for as long as clusters keep them.
func TestClaimsThatStayAreReported(t *testing.T) {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name}}
	claim := inventory.Entry{ID: inventory.ID{Namespace: "shop", Name: "data", GroupKind: schema.GroupKind{Kind: "PersistentVolumeClaim"}}, Version: "v1"}
	if termination.Some(ks.Status) {
		t.Error("something is left of nothing")
	}
	ks.Status.Inventory = inventory.Record([]inventory.Entry{claim})
	if !termination.Some(ks.Status) {
		t.Error("claims are not looked at")
	}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
	find := func(keeps ...rollup.Part) termination.Found {
		found, err := termination.New(fleet{keeps: keeps}, hub, mapper()).Find(t.Context(), termination.Query{Of: ks, Owned: []inventory.Entry{claim}})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	const want = "Applied revision: 2; claim shop/data stays in west: flotilla prune --cluster west removes it"
	kept := find(rollup.Part{Object: "PersistentVolumeClaim shop/data", Kept: []string{"west"}})
	for _, message := range []string{"Applied revision: 2", want, "Applied revision: 2; claim shop/logs stays in east: flotilla prune --cluster east removes it"} {
		if got := kept.Describe(message); got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	if got := find().Describe(want); got != "Applied revision: 2" {
		t.Errorf("told %q once it is gone", got)
	}
}
