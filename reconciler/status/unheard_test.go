package status

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// TestUnheard: a minute after a cluster fell silent, what it reported last does not count in templates any more. What is placed
// there is looked at once for each change, where its status depends on it. It counts at once that one is heard of again, however
// often it came and went.
func TestUnheard(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	clock := clocktesting.NewFakePassiveClock(noon)
	west := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
	named := func(b *workv1alpha2.ResourceBinding, name string) *workv1alpha2.ResourceBinding {
		b.Namespace, b.Name = "shop", name
		return b
	}
	leaving := named(placed("apps/v1", "Deployment", "east"), "leaving")
	leaving.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "west"}}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(west).WithObjects(
		west, named(placed("apps/v1", "Deployment", "east", "west"), "web"), named(placed("v1", "ConfigMap", "east", "west"), "config"),
		named(placed("apps/v1", "Deployment", "east"), "elsewhere"), leaving,
	).Build()
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web"}}}
	r := New(hub, templates{template, templatestore.Present}, interpreter.Native(), Options{Clock: clock})
	queue := workqueue.NewTypedRateLimitingQueue(limiter())
	defer queue.ShutDown()
	if err := r.inbox.attach(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	type counts struct{ Replicas, ReadyReplicas, UnavailableReplicas int }
	type outcome struct {
		Again  time.Duration
		Looked []string
		counts
	}
	const running = `{"replicas":2,"readyReplicas":2,"availableReplicas":2}`
	for _, step := range []struct {
		what   string
		at     time.Duration // after noon
		status metav1.ConditionStatus
		since  time.Duration // after noon
		want   outcome
	}{
		{"both are heard of", 0, metav1.ConditionTrue, -time.Hour, outcome{counts: counts{4, 4, 0}}},
		{"one has not been heard of for half a minute", 30 * time.Second, metav1.ConditionFalse, 0, outcome{Again: 30 * time.Second, counts: counts{4, 4, 0}}},
		{"for a minute", time.Minute, metav1.ConditionFalse, 0, outcome{Looked: []string{"leaving", "web"}, counts: counts{4, 2, 2}}},
		{"for another reason since", 65 * time.Second, metav1.ConditionUnknown, time.Minute, outcome{counts: counts{4, 2, 2}}},
		{"it is heard of again", 2 * time.Minute, metav1.ConditionTrue, 2 * time.Minute, outcome{Looked: []string{"leaving", "web"}, counts: counts{4, 4, 0}}},
		{"it is lost a second time", 195 * time.Second, metav1.ConditionFalse, 130 * time.Second, outcome{Looked: []string{"leaving", "web"}, counts: counts{4, 2, 2}}},
		{"and heard of a moment later", 196 * time.Second, metav1.ConditionTrue, 196 * time.Second, outcome{Looked: []string{"leaving", "web"}, counts: counts{4, 4, 0}}},
		{"it is lost a third time", 260 * time.Second, metav1.ConditionFalse, 200 * time.Second, outcome{Looked: []string{"leaving", "web"}, counts: counts{4, 2, 2}}},
		{"and heard of a moment later, too", 261 * time.Second, metav1.ConditionTrue, 261 * time.Second, outcome{Looked: []string{"leaving", "web"}, counts: counts{4, 4, 0}}},
		{"a fourth loss counts after a pause", 325 * time.Second, metav1.ConditionFalse, 265 * time.Second, outcome{Again: 55 * time.Second, counts: counts{4, 4, 0}}},
		{"what it missed is looked at after that", 330 * time.Second, metav1.ConditionTrue, 330 * time.Second, outcome{Again: 50 * time.Second, counts: counts{4, 4, 0}}},
	} {
		clock.SetTime(noon.Add(step.at))
		west.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: step.status, LastTransitionTime: metav1.NewTime(noon.Add(step.since))}}
		if err := hub.Status().Update(t.Context(), west); err != nil {
			t.Fatal(err)
		}
		result, err := r.unheard.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(west)})
		if err != nil {
			t.Fatal(err)
		}
		got := outcome{Again: result.RequeueAfter}
		for queue.Len() > 0 {
			req, _ := queue.Get()
			queue.Done(req)
			got.Looked = append(got.Looked, req.Name)
		}
		slices.Sort(got.Looked)
		s := &state{binding: placed("apps/v1", "Deployment", "east", "west"), items: []workv1alpha2.AggregatedStatusItem{
			item("east", true, workv1alpha2.ResourceHealthy, running), item("west", true, workv1alpha2.ResourceHealthy, running),
		}}
		if _, err := r.total(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(s.total)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &got.counts); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
		if reported := string(s.items[1].Status.Raw); reported != running {
			t.Errorf("%s: the binding is told %s", step.what, reported)
		}
	}
}
