package watches

import (
	"context"
	"slices"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

var web = inventory.ID{Namespace: "shop", Name: "web", GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}}

// holding returns a Kustomization that waits for health and holds an object.
func holding(name string, id inventory.ID) *kustomizev1.Kustomization {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}, Spec: kustomizev1.KustomizationSpec{Wait: true}}
	ks.Status.Inventory = &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{{ID: id.String(), Version: "v1"}}}
	return ks
}

// TestWhoChecksACluster: those who check the health of something that is to be in a cluster, and no others; and those of them
// that say that they wait for a silent one.
func TestWhoChecksACluster(t *testing.T) {
	careless, suspended, listing := holding("careless", web), holding("suspended", web), holding("listing", web)
	careless.Spec.Wait, suspended.Spec.Suspend, listing.Spec.Wait = false, true, false
	listing.Status.Inventory = nil
	listing.Spec.HealthChecks = []meta.NamespacedObjectKindReference{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}}
	config := web
	config.GroupKind = schema.GroupKind{Kind: "ConfigMap"}
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "west"}}
	elsewhere := holding("elsewhere", config)
	for _, ks := range []*kustomizev1.Kustomization{listing, elsewhere} {
		ks.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Reason: health.ReasonClusterSilent}}
	}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(b, holding("apps", web), elsewhere, careless, suspended, listing).Build()
	type found struct{ Checking, Waiting []string }
	for cluster, want := range map[string]found{"west": {[]string{"apps", "listing"}, []string{"listing"}}, "north": {}} {
		names := func(find func(context.Context, string) ([]reconcile.Request, error)) (out []string) {
			requests, err := find(t.Context(), cluster)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range requests {
				out = append(out, r.Name)
			}
			slices.Sort(out)
			return out
		}
		got := found{names(MapFuncs{Hub: hub}.checking), names(MapFuncs{Hub: hub}.waitingFor)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in %s (-want +got):\n%s", cluster, diff)
		}
	}
}

// doubting is a States that records what is in doubt.
type doubting struct{ doubted []string }

func (*doubting) WaitingFor(inventory.ID) []client.ObjectKey                         { return nil }
func (*doubting) WaitingForSiblings(inventory.Source) []client.ObjectKey             { return nil }
func (*doubting) RecreateAfter(client.ObjectKey, inventory.ID) (time.Duration, bool) { return 0, false }
func (*doubting) ForceFullRun(client.ObjectKey)                                      {}
func (d *doubting) Doubt(key client.ObjectKey)                                       { d.doubted = append(d.doubted, key.Name) }

// line is a queue that records what is added with a delay.
type line struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	names []string
}

func (q *line) AddAfter(req reconcile.Request, _ time.Duration) { q.names = append(q.names, req.Name) }

// TestAParentHearsOfSilence: a Kustomization that is ready doubts that when one that it holds begins to wait for a silent
// cluster, or ends to. A label does not make it the parent.
func TestAParentHearsOfSilence(t *testing.T) {
	child := func(reason, owner string) *kustomizev1.Kustomization {
		ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "apps", Labels: map[string]string{
			"kustomize.toolkit.fluxcd.io/name": owner, "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
		}}}
		ks.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Reason: reason}}
		return ks
	}
	root := holding("root", inventory.OfKustomization(client.ObjectKey{Namespace: "flux-system", Name: "apps"}))
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(root, holding("stranger", web)).Build()
	const ready, silent = meta.ReconciliationSucceededReason, health.ReasonClusterSilent
	for name, tc := range map[string]struct {
		was, is, owner string
		want           []string
	}{
		"it falls silent":                  {ready, silent, "root", []string{"root"}},
		"it is heard of again":             {silent, ready, "root", []string{"root"}},
		"it says something else":           {ready, meta.ProgressingReason, "root", nil},
		"its labels name one without it":   {ready, silent, "stranger", nil},
		"its labels name one that is gone": {ready, silent, "gone", nil},
	} {
		t.Run(name, func(t *testing.T) {
			states, queue := &doubting{}, &line{}
			MapFuncs{Hub: hub, States: states}.WhenKustomizationChanges().Update(t.Context(), event.UpdateEvent{ObjectOld: child(tc.was, tc.owner), ObjectNew: child(tc.is, tc.owner)}, queue)
			if diff := cmp.Diff([][]string{tc.want, tc.want}, [][]string{states.doubted, queue.names}); diff != "" {
				t.Errorf("in doubt, and enqueued (-want +got):\n%s", diff)
			}
		})
	}
}
