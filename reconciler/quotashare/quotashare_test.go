package quotashare

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
)

var team = client.ObjectKey{Namespace: "shop", Name: "team"}

// limited is shop/team, with so many cores for each cluster.
func limited(shares map[string]string) *policyv1alpha1.FederatedResourceQuota {
	q := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: team.Namespace, Name: team.Name, UID: "q"}}
	for cluster, cpu := range shares {
		q.Spec.StaticAssignments = append(q.Spec.StaticAssignments, policyv1alpha1.StaticClusterAssignment{
			ClusterName: cluster, Hard: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		})
	}
	return q
}

// world is a hub with the clusters east and west, which have joined, and south, which has no
// room yet.
type world struct {
	*testing.T
	client.WithWatch
	*Reconciler
	recorder *record.FakeRecorder
	writes   int
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{T: t, recorder: record.NewFakeRecorder(20)}
	for _, name := range []string{"east", "west", "south"} {
		objects = append(objects, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if name != "south" {
			objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workv1alpha2.ExecutionNamespace(name)}})
		}
	}
	w.WithWatch = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			w.writes++
			obj.SetUID(types.UID(obj.GetNamespace()))
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			w.writes++
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	w.restart()
	return w
}

// restart forgets what was written.
func (w *world) restart() { w.Reconciler = New(w.WithWatch, w.recorder, Options{}) }

func (w *world) reconcile() reconcile.Result {
	w.Helper()
	result, err := w.Reconcile(w.Context(), reconcile.Request{NamespacedName: team})
	if err != nil {
		w.Fatal(err)
	}
	return result
}

// wants fails unless clusters have these shares, and no others. A Work that is being deleted
// is none.
func (w *world) wants(what string, want map[string]string) {
	w.Helper()
	var works workv1alpha1.WorkList
	if err := w.List(w.Context(), &works); err != nil {
		w.Fatal(err)
	}
	got := map[string]string{}
	for i := range works.Items {
		if works.Items[i].DeletionTimestamp != nil {
			continue
		}
		cluster, _ := workv1alpha2.ClusterOfExecutionNamespace(works.Items[i].Namespace)
		_, after, _ := strings.Cut(string(works.Items[i].Spec.Workload.Manifests[0].Raw), `"cpu":"`)
		got[cluster], _, _ = strings.Cut(after, `"`)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("%s: shares (-want +got):\n%s", what, diff)
	}
}

func (w *world) events() (out []string) {
	for len(w.recorder.Events) > 0 {
		out = append(out, <-w.recorder.Events)
	}
	return out
}

func (w *world) work(cluster string) *workv1alpha1.Work {
	w.Helper()
	out := &workv1alpha1.Work{}
	if err := w.Get(w.Context(), client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: plan.ShareName(team)}, out); err != nil {
		w.Fatal(err)
	}
	return out
}

func TestClustersGetTheirShares(t *testing.T) {
	w := newWorld(t, limited(map[string]string{"east": "4", "south": "1", "mars": "1"}))
	w.reconcile()
	w.wants("those that have joined", map[string]string{"east": "4"})
	w.reconcile()
	w.restart()
	w.reconcile()
	if w.writes != 1 {
		t.Errorf("%d writes, want one: unchanged is none", w.writes)
	}

	if err := w.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workv1alpha2.ExecutionNamespace("south")}}); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.wants("one that joins", map[string]string{"east": "4", "south": "1"})

	set := func(shares map[string]string) {
		t.Helper()
		q := &policyv1alpha1.FederatedResourceQuota{}
		if err := w.Get(t.Context(), team, q); err != nil {
			t.Fatal(err)
		}
		q.Spec = limited(shares).Spec
		if err := w.Update(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
	}
	set(map[string]string{"east": "2", "west": "3"})
	w.wants("others", map[string]string{"east": "2", "west": "3"})

	work := w.work("west")
	work.Spec.SuspendDispatching, work.Annotations = ptr.To(true), map[string]string{workv1alpha2.AppliedByAnnotation: `[{"user":"alice"}]`}
	if err := w.Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.reconcile()
	if work = w.work("west"); work.Spec.SuspendDispatching != nil || work.Annotations[workv1alpha2.AppliedByAnnotation] != "" {
		t.Errorf("somebody's edit stays: %+v, %v", work.Spec.SuspendDispatching, work.Annotations)
	}

	if err := w.WithWatch.Delete(t.Context(), limited(nil)); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.wants("none after the quota", map[string]string{})
	if events := slices.DeleteFunc(w.events(), func(e string) bool { return strings.Contains(e, "cluster mars: ") }); len(events) > 0 {
		t.Errorf("events %q", events)
	}
}

// TestAWorkOfAnother: a ResourceQuota of the same name that a policy carries has precedence,
// and what somebody made by hand is left alone; the other clusters get their shares.
func TestAWorkOfAnother(t *testing.T) {
	theirs := func(change func(*workv1alpha1.Work)) *workv1alpha1.Work {
		out := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: plan.ShareName(team)}}
		out.Spec.Workload.Manifests = []workv1alpha1.Manifest{{}}
		out.Spec.Workload.Manifests[0].Raw = []byte(`{"spec":{"hard":{"cpu":"9"}}}`)
		change(out)
		return out
	}
	bound := theirs(func(work *workv1alpha1.Work) {
		work.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b"}
		work.Annotations = map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotationKey: "shop", workv1alpha2.ResourceBindingNameAnnotationKey: "team-resourcequota"}
	})
	for name, tc := range map[string]struct {
		stands []client.Object
		want   string
	}{
		"a binding":                    {[]client.Object{besideIn("east"), bound}, "it has the ResourceQuota shop/team of the binding shop/team-resourcequota"},
		"the work of one that is gone": {[]client.Object{bound}, "is of the binding shop/team-resourcequota still"},
		"a work by hand":               {[]client.Object{theirs(func(*workv1alpha1.Work) {})}, "none of the control plane's: delete it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.stands, limited(map[string]string{"east": "4", "west": "3"}))...)
			if again := w.reconcile().RequeueAfter; again != recheckPeriod {
				t.Errorf("looked at again after %s", again)
			}
			w.reconcile()
			w.wants("the other's stays", map[string]string{"east": "9", "west": "3"})
			events := w.events()
			if len(events) != 1 || !strings.HasPrefix(events[0], "Warning SyncWorkFailed cluster east: ") || !strings.Contains(events[0], tc.want) {
				t.Errorf("events %q", events)
			}
			if err := w.WithWatch.Delete(t.Context(), limited(nil)); err != nil {
				t.Fatal(err)
			}
			w.reconcile()
			w.wants("also when the quota goes", map[string]string{"east": "9"})
		})
	}
}

// besideIn is the binding of the ResourceQuota shop/team in clusters.
func besideIn(clusters ...string) *workv1alpha2.ResourceBinding {
	out := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team-resourcequota"}}
	out.Spec.Resource.Kind = "ResourceQuota"
	for _, name := range clusters {
		out.Spec.Clusters = append(out.Spec.Clusters, workv1alpha2.TargetCluster{Name: name})
	}
	return out
}

// TestAShareMakesRoom for a ResourceQuota that a policy carries, and comes back.
func TestAShareMakesRoom(t *testing.T) {
	w := newWorld(t, limited(map[string]string{"east": "4", "west": "3"}))
	w.reconcile()
	if err := w.Create(t.Context(), besideIn("west")); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.wants("room", map[string]string{"east": "4"})
	if err := w.WithWatch.Delete(t.Context(), besideIn()); err != nil {
		t.Fatal(err)
	}
	work := w.work("west")
	work.Finalizers = nil // the cluster has it no more
	if err := w.Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.reconcile()
	w.wants("both", map[string]string{"east": "4", "west": "3"})
}

// TestAClusterThatRefuses its share, because it has a ResourceQuota of the name, say, is reported
// once, until it takes it.
func TestAClusterThatRefuses(t *testing.T) {
	w := newWorld(t, limited(map[string]string{"east": "4"}))
	w.reconcile()
	set := func(status metav1.ConditionStatus, generation int64) *workv1alpha1.Work {
		t.Helper()
		work := w.work("east")
		work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: status, ObservedGeneration: generation, Message: "it is somebody else's"}}
		if err := w.Update(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		w.restart() // what was written is seen
		return work
	}
	set(metav1.ConditionFalse, 7)
	w.reconcile()
	if events := w.events(); len(events) > 0 {
		t.Errorf("told of another version: %q", events)
	}
	refused := set(metav1.ConditionFalse, 0)
	w.reconcile()
	if again := w.reconcile().RequeueAfter; again != recheckPeriod {
		t.Errorf("looked at again after %s", again)
	}
	if diff := cmp.Diff([]string{"Warning SyncWorkFailed cluster east: it does not have the share: it is somebody else's"}, w.events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	takes := set(metav1.ConditionTrue, 0)
	w.reconcile()
	if events := w.events(); len(events) > 0 {
		t.Errorf("told of what is well: %q", events)
	}
	if !w.works.changes().Update(event.UpdateEvent{ObjectOld: refused, ObjectNew: takes}) {
		t.Error("that the cluster takes it is not looked at")
	}
}

// TestAShareOfAClusterThatNobodyHas: it is told once, as its name may be mistyped. One that has only begun to join is none.
func TestAShareOfAClusterThatNobodyHas(t *testing.T) {
	w := newWorld(t, limited(map[string]string{"east": "4", "south": "1", "wst": "3"}))
	w.reconcile()
	w.reconcile()
	w.wants("the others have theirs", map[string]string{"east": "4"})
	want := []string{"Warning SyncWorkFailed cluster wst: there is none of that name: its share waits until one joins"}
	if diff := cmp.Diff(want, w.events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestNamespacesThatStay get no shares, in any cluster.
func TestNamespacesThatStay(t *testing.T) {
	q := limited(map[string]string{"east": "4"})
	q.Namespace = "kube-system"
	w := newWorld(t, q)
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(q)}); err != nil {
		t.Fatal(err)
	}
	w.wants("nothing", map[string]string{})
	if events := w.events(); len(events) != 1 || !strings.Contains(events[0], "the namespace kube-system stays in the control plane") {
		t.Errorf("events %q", events)
	}
}

// TestWhatIsWrittenMeanwhile: a binding that takes a Work in the moment in which its share is
// changed keeps it, and nobody is told of that.
func TestWhatIsWrittenMeanwhile(t *testing.T) {
	w := newWorld(t, limited(map[string]string{"east": "4"}))
	w.reconcile()
	work := w.work("east")
	work.Spec.PreserveResourcesOnDeletion = ptr.To(true)
	if err := w.Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	seen := w.work("east") // and then it is another's
	work.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = "b"
	if err := w.Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.works.hub = interceptor.NewClient(w.WithWatch, interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
		seen.DeepCopyInto(obj.(*workv1alpha1.Work))
		return nil
	}})
	if again := w.reconcile().RequeueAfter; again != conflictRetry {
		t.Errorf("looked at again after %s", again)
	}
	if got := w.work("east"); got.Spec.PreserveResourcesOnDeletion == nil || len(w.events()) > 0 {
		t.Errorf("the binding's work was changed: %+v", got.Spec)
	}
}

// TestWhatIsLookedAt names the quotas that a change concerns.
func TestWhatIsLookedAt(t *testing.T) {
	w := newWorld(t, limited(map[string]string{"east": "4"}))
	for name, tc := range map[string]struct {
		got  []reconcile.Request
		want bool
	}{
		"a cluster with a share":            {w.ofCluster(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}), true},
		"a cluster without one":             {w.ofCluster(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}), false},
		"the namespace of one with a share": {w.ofSpace(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-east"}}), true},
		"any other namespace":               {w.ofSpace(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "east"}}), false},
		"a ResourceQuota's binding":         {besideBinding(t.Context(), besideIn("east")), true},
		"any other binding":                 {besideBinding(t.Context(), &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"}}), false},
		"a work of nobody's":                {ofWork(t.Context(), &workv1alpha1.Work{}), false},
	} {
		if is := len(tc.got) == 1 && tc.got[0].NamespacedName == team; is != tc.want || !tc.want && len(tc.got) > 0 {
			t.Errorf("%s: %v", name, tc.got)
		}
	}
	w.reconcile()
	work := w.work("east")
	edited, status := work.DeepCopy(), work.DeepCopy()
	edited.ResourceVersion, edited.Generation = "77", 9
	status.ResourceVersion = "77"
	other := &workv1alpha1.Work{}
	for _, step := range []struct {
		name      string
		got, want bool
	}{
		{"own work comes", w.works.changes().Create(event.CreateEvent{Object: work}), false},
		{"a work that a start finds", w.works.changes().Create(event.CreateEvent{Object: work, IsInInitialList: true}), true},
		{"an edit", w.works.changes().Update(event.UpdateEvent{ObjectOld: work, ObjectNew: edited}), true},
		{"a status", w.works.changes().Update(event.UpdateEvent{ObjectOld: work, ObjectNew: status}), false},
		{"its labels go", w.works.changes().Update(event.UpdateEvent{ObjectOld: work, ObjectNew: other}), true},
		{"its end", w.works.changes().Delete(event.DeleteEvent{Object: work}), true},
		{"the end of another", w.works.changes().Delete(event.DeleteEvent{Object: other}), false},
		{"another", w.works.changes().Create(event.CreateEvent{Object: other}), false},
	} {
		if step.got != step.want {
			t.Errorf("%s: %t", step.name, step.got)
		}
	}
}
