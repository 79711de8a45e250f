package scheduler

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/reconciler/decider"
)

// TestObjectsGoWhereTheirDefinitionGoes: an object whose kind no cluster serves
// waits, is enqueued when the definition of its kind is placed, and is then
// placed in the same clusters as the definition.
func TestObjectsGoWhereTheirDefinitionGoes(t *testing.T) {
	pool := schema.GroupVersionKind{Group: "shop.example.io", Version: "v1", Kind: "Pool"}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(pool, meta.RESTScopeNamespace)
	b := bound(func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "shop.example.io/v1", Kind: "Pool", Namespace: "shop", Name: "big"}
		b.Spec.Placement = &policyv1alpha1.Placement{}
	})
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	hub := hubOf(cluster("m1"), cluster("m2"), cluster("m3"), b).Build()
	r := New(hub, decider.New(hub, decider.Options{Clock: clock, Mapper: mapper}), &recorder{}, Options{Clock: clock})
	key := client.ObjectKeyFromObject(b)
	read := func() []string {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		now := &workv1alpha2.ResourceBinding{}
		if err := hub.Get(t.Context(), key, now); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, target := range now.Spec.Clusters {
			names = append(names, target.Name)
		}
		return names
	}
	if got := read(); got != nil {
		t.Fatalf("nobody serves the kind, and it goes to %v", got)
	}

	definition := &workv1alpha2.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "pools.shop.example.io-customresourcedefinition"},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "pools.shop.example.io"},
			Clusters: []workv1alpha2.TargetCluster{{Name: "m1"}, {Name: "m3"}},
		},
	}
	if err := hub.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	q := fairqueue.WithClock(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), clock)
	r.wakes.bindingEvents().Create(t.Context(), event.CreateEvent{Object: definition}, q)
	var woken []string
	for q.Len() > 0 {
		req, _ := q.Get()
		q.Done(req)
		woken = append(woken, req.Name)
	}
	if !slices.Contains(woken, b.Name) {
		t.Errorf("looked at again: %v", woken)
	}
	if diff := cmp.Diff([]string{"m1", "m3"}, read()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}
