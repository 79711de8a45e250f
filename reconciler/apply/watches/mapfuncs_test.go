package watches_test

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/reconciler/apply/watches"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// waiting is a States with the Kustomizations that wait for each Kustomization.
type waiting map[client.ObjectKey][]client.ObjectKey

func (w waiting) WaitingFor(id inventory.ID) []client.ObjectKey {
	if id.GroupKind.Group != kustomizev1.GroupVersion.Group || id.GroupKind.Kind != kustomizev1.KustomizationKind {
		return nil
	}
	return w[client.ObjectKey{Namespace: id.Namespace, Name: id.Name}]
}
func (waiting) WaitingForSiblings(inventory.Source) []client.ObjectKey             { return nil }
func (waiting) RecreateAfter(client.ObjectKey, inventory.ID) (time.Duration, bool) { return 0, false }
func (waiting) ForceFullRun(client.ObjectKey)                                      {}
func (waiting) Doubt(client.ObjectKey)                                             {}

// inLine is a queue that records what is added with a delay.
type inLine struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	later []reconcile.Request
}

func (q *inLine) AddAfter(req reconcile.Request, _ time.Duration) { q.later = append(q.later, req) }

// TestAChildWakesItsParent: who waits for another Kustomization hears of it when that changes, comes or goes.
func TestAChildWakesItsParent(t *testing.T) {
	key := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: "flux-system", Name: name} }
	handler := watches.MapFuncs{States: waiting{key("apps"): {key("fleet")}}}.WhenKustomizationChanges()
	for name, notify := range map[string]func(child client.Object, queue *inLine){
		"it changes": func(child client.Object, queue *inLine) {
			handler.Update(t.Context(), event.UpdateEvent{ObjectOld: child, ObjectNew: child}, queue)
		},
		"it comes": func(child client.Object, queue *inLine) {
			handler.Create(t.Context(), event.CreateEvent{Object: child}, queue)
		},
		"it goes": func(child client.Object, queue *inLine) {
			handler.Delete(t.Context(), event.DeleteEvent{Object: child}, queue)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var queue inLine
			for _, name := range []string{"apps", "other"} {
				notify(&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}}, &queue)
			}
			if diff := cmp.Diff([]reconcile.Request{{NamespacedName: key("fleet")}}, queue.later); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
