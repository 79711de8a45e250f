package deletionrecheck_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/execution/deletionrecheck"
)

const id = "11111111-1111-1111-1111-111111111111"

// world is "web", which is placed in east, and whose Work in west is being deleted since second 100.
type world struct {
	binding    *workv1alpha2.ResourceBinding
	west, east *workv1alpha1.Work
	copies     []*workv1alpha1.Work // elsewhere
	clusters   map[string]*clusterv1alpha1.Cluster
}

func work(cluster string, health workv1alpha1.ResourceHealth) *workv1alpha1.Work {
	return &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: workv1alpha2.WorkName("Deployment", "web", "shop"),
			Labels:      map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: id},
			Annotations: map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotationKey: "shop", workv1alpha2.ResourceBindingNameAnnotationKey: "web-deployment"},
		},
		Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{}}}},
		Status: workv1alpha1.WorkStatus{
			Conditions:       []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}},
			ManifestStatuses: []workv1alpha1.ManifestStatus{{Health: health}},
		},
	}
}

// newWorld returns the world in which west was lost after the deletion began, and east, too.
func newWorld(t *testing.T) *world {
	t.Helper()
	const no = metav1.ConditionFalse
	w := &world{
		binding: &workv1alpha2.ResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: id}},
			Spec: workv1alpha2.ResourceBindingSpec{
				Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
				Clusters: []workv1alpha2.TargetCluster{{Name: "east"}},
			},
		},
		west: work("west", workv1alpha1.ResourceHealthy), east: work("east", workv1alpha1.ResourceHealthy),
		clusters: map[string]*clusterv1alpha1.Cluster{
			"west": ready("west", no, clusterv1alpha1.ClusterAnswersAgainReason, 200),
			"east": ready("east", no, clusterv1alpha1.ClusterNotReachableReason, 250),
		},
	}
	w.west.DeletionTimestamp, w.west.Finalizers = &metav1.Time{Time: time.Unix(100, 0)}, []string{"a/b"}
	return w
}

// hub returns the hub that has what is in the world.
func (w *world) hub() client.Client {
	objs := []client.Object{w.west}
	if w.east != nil {
		objs = append(objs, w.east)
	}
	if w.binding != nil {
		objs = append(objs, w.binding)
	}
	for _, c := range w.copies {
		objs = append(objs, c)
	}
	for _, c := range w.clusters {
		objs = append(objs, c)
	}
	return fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objs...).Build()
}

// ready is a cluster whose condition Ready is so since that second.
func ready(name string, status metav1.ConditionStatus, reason string, since int64) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: clusterv1alpha1.ClusterStatus{
		Conditions: []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: status, Reason: reason, LastTransitionTime: metav1.Unix(since, 0)}},
	}}
}

const text = "Deployment shop/web is healthy in none of the clusters that it is placed in (east): this cluster or the control plane was away before the copy here was removed, which stays until one is"

// TestKeeps: what was decided when another copy was healthy counts no more once the cluster was lost in between, and that copy is gone.
func TestKeeps(t *testing.T) {
	const no, yes = metav1.ConditionFalse, metav1.ConditionTrue
	const away = clusterv1alpha1.ClusterNotReachableReason
	for name, tc := range map[string]struct {
		change func(w *world)
		want   string
	}{
		"the cluster that it went to is lost, too": {func(*world) {}, text},
		"it has become unhealthy there": {func(w *world) {
			w.clusters["east"] = ready("east", yes, "a", 1)
			w.east.Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy
		}, text},
		"it is not there any more":                        {func(w *world) { w.clusters["east"] = ready("east", yes, "a", 1); w.east = nil }, text},
		"that cluster has left the fleet":                 {func(w *world) { delete(w.clusters, "east") }, text},
		"the loss was not known yet":                      {func(w *world) { w.clusters["west"] = ready("west", no, away, 41) }, text},
		"it served nobody here when it was heard of last": {func(w *world) { w.west.Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy }, text},
		"nothing was ever reported of it here":            {func(w *world) { w.west.Status = workv1alpha1.WorkStatus{} }, text},
		"it is placed here again":                         {func(w *world) { w.binding.Spec.Clusters[0].Name = "west" }, "Deployment shop/web is healthy in none of the clusters that it is placed in (west): this cluster or the control plane was away before the copy here was removed, which stays until one is"},
		"it was kept before, and the cluster is well again": {func(w *world) {
			w.clusters["west"] = ready("west", yes, "a", 300)
			kept(w.west, deletionrecheck.Reason)
		}, text},

		"it is healthy there":                            {func(w *world) { w.clusters["east"] = ready("east", yes, "a", 1) }, ""},
		"it was kept, and is healthy there by now":       {func(w *world) { kept(w.west, deletionrecheck.Reason); w.clusters["east"] = ready("east", yes, "a", 1) }, ""},
		"this cluster was never lost":                    {func(w *world) { w.clusters["west"] = ready("west", yes, "a", 1) }, ""},
		"it was lost before, and the removal asked then": {func(w *world) { w.clusters["west"] = ready("west", no, away, 40) }, ""},
		"something else held it up":                      {func(w *world) { w.clusters["west"] = ready("west", yes, "a", 300); kept(w.west, "Terminating") }, ""},
		"it could not be applied here": {func(w *world) {
			w.west.Status = workv1alpha1.WorkStatus{Conditions: []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: no}}}
		}, ""},
		"the template is deleted": {func(w *world) {
			w.binding.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)}
			w.binding.Finalizers = []string{"a/b"}
		}, ""},
		"its objects stay":   {func(w *world) { w.west.Spec.PreserveResourcesOnDeletion = ptr.To(true) }, ""},
		"it is wanted again": {func(w *world) { w.west.Annotations[workv1alpha2.WantedAgainAnnotation] = "true" }, ""},
		"the cluster leaves the fleet": {func(w *world) {
			kept(w.west, deletionrecheck.Reason)
			w.clusters["west"].DeletionTimestamp, w.clusters["west"].Finalizers = &metav1.Time{Time: time.Unix(9, 0)}, []string{"a/b"}
		}, ""},
		"it is pruned here":          {func(w *world) { plan.SetPrunedFrom(w.binding, []string{"west"}) }, ""},
		"its binding is gone":        {func(w *world) { w.binding = nil }, ""},
		"the binding is another one": {func(w *world) { w.binding.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = "other" }, ""},
		"it is placed nowhere":       {func(w *world) { w.binding.Spec.Clusters = nil }, ""},
		"it leaves before it starts elsewhere": {func(w *world) {
			w.binding.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "west", PurgeMode: policyv1alpha1.PurgeModeDirectly}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.change(w)
			hub := w.hub()
			got := ""
			if err := deletionrecheck.New(hub, deletionrecheck.Options{Bindings: true}).Keeps(t.Context(), w.west, w.clusters["west"]); err != nil {
				if got = err.Error(); !deletionrecheck.Is(err) {
					t.Errorf("it is no Kept: %v", err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := deletionrecheck.New(hub, deletionrecheck.Options{}).Keeps(t.Context(), w.west, w.clusters["west"]); err != nil {
				t.Errorf("an agent keeps it: %v", err)
			}
		})
	}
}

func kept(w *workv1alpha1.Work, reason string) {
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkDeletionBlocked, Status: metav1.ConditionTrue, Reason: reason})
}
