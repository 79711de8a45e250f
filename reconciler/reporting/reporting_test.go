package reporting

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// recorder notes on what there was an Event, and why.
type recorder []string

func (r *recorder) Event(obj runtime.Object, _, reason, _ string) {
	if ref, ok := obj.(*corev1.ObjectReference); ok {
		*r = append(*r, ref.Kind+" "+ref.Namespace+"/"+ref.Name+" "+reason)
		return
	}
	about, err := meta.Accessor(obj)
	if err != nil {
		panic(err) // it is no object
	}
	kind := about.GetNamespace()
	if c, ok := obj.(*clusterv1alpha1.Cluster); ok {
		kind = "Cluster " + string(c.UID) // shows whether it was found
	}
	*r = append(*r, kind+"/"+about.GetName()+" "+reason)
}

func binding(name string, change func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "1"},
		Spec:       workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: "web"}},
	}
	if change != nil {
		change(b)
	}
	return b
}

// share is a new Work that brings a share of a quota.
func share(quota string) *workv1alpha1.Work {
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-east", Name: plan.ShareName(types.NamespacedName{Namespace: "shop", Name: quota}), UID: "2", Generation: 1,
		Labels: map[string]string{policyv1alpha1.FederatedResourceQuotaNamespaceLabel: "shop", policyv1alpha1.FederatedResourceQuotaNameLabel: quota},
	}}
}

func TestWhatIsReportedOnWhat(t *testing.T) {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-east", Name: "web-1", UID: "1", Generation: 1,
		Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id"},
		Annotations: map[string]string{
			workv1alpha2.ResourceBindingNamespaceAnnotationKey: "shop", workv1alpha2.ResourceBindingNameAnnotationKey: "web-deployment",
		},
	}}
	applied := work.DeepCopy()
	applied.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	byHand := work.DeepCopy()
	byHand.Labels, byHand.Annotations = nil, nil
	reported := func(b *workv1alpha2.ResourceBinding) {
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true}}
	}
	needed := func(by string) func(*workv1alpha2.ResourceBinding) {
		return func(b *workv1alpha2.ResourceBinding) {
			b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: by}}
		}
	}
	counted := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cores"}}
	counted.Status.Overall = corev1.ResourceList{"cpu": {}}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-east"}}
	for name, tc := range map[string]struct {
		change func(to cache.ResourceEventHandler)
		of     func(r *Reporter, ctx context.Context, before, after any)
		want   recorder
	}{
		"a binding and its template": {
			of: (*Reporter).binding, change: func(to cache.ResourceEventHandler) {
				to.OnUpdate(binding("web-deployment", nil), binding("web-deployment", reported))
			},
			want: recorder{"Deployment shop/web AggregateStatusSucceed", "shop/web-deployment AggregateStatusSucceed"},
		},
		"what was there when the loops began": {
			of: (*Reporter).binding, change: func(to cache.ResourceEventHandler) { to.OnAdd(binding("web-deployment", reported), true) },
		},
		"one that needs another": {
			of: (*Reporter).binding, change: func(to cache.ResourceEventHandler) {
				to.OnAdd(binding("settings-configmap", needed("web-deployment")), false)
			},
			want: recorder{"shop/web-deployment SyncScheduleResultToDependenciesSucceed"},
		},
		"one that is gone and needed another": {
			of: (*Reporter).binding, change: func(to cache.ResourceEventHandler) { to.OnAdd(binding("settings-configmap", needed("gone")), false) },
		},
		"a deleted binding": {
			of: (*Reporter).binding, change: func(to cache.ResourceEventHandler) {
				to.OnDelete(cache.DeletedFinalStateUnknown{Obj: binding("web-deployment", reported)})
			},
		},
		"a Work, its binding and its template": {
			of: (*Reporter).work, change: func(to cache.ResourceEventHandler) {
				to.OnAdd(work, false)
				to.OnUpdate(work, applied)
			},
			want: recorder{"Deployment shop/web SyncWorkSucceed", "shop/web-deployment SyncWorkSucceed", "karmada-es-east/web-1 SyncSucceed"},
		},
		"a Work that brings a share of a quota": {
			of: (*Reporter).work, change: func(to cache.ResourceEventHandler) {
				to.OnAdd(share("cores"), false)
				to.OnAdd(share("gone"), false)
			},
			want: recorder{"shop/cores SyncWorkSucceed"},
		},
		"a Work of somebody's own": {
			of: (*Reporter).work, change: func(to cache.ResourceEventHandler) { to.OnAdd(byHand, false) },
		},
		"a quota": {
			of: (*Reporter).quota, change: func(to cache.ResourceEventHandler) { to.OnAdd(counted, false) },
			want: recorder{"shop/cores CollectOverallStatusSucceed"},
		},
		"a cluster's namespace comes and goes": {
			of: (*Reporter).space, change: func(to cache.ResourceEventHandler) {
				to.OnAdd(space, false)
				to.OnUpdate(space, space)
				to.OnDelete(space)
			},
			want: recorder{"Cluster c/east CreateExecutionSpaceSucceed", "Cluster c/east RemoveExecutionSpaceSucceed"},
		},
		"the namespace of a cluster that has left": {
			of: (*Reporter).space, change: func(to cache.ResourceEventHandler) {
				to.OnDelete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-west"}})
			},
			want: recorder{"Cluster /west RemoveExecutionSpaceSucceed"},
		},
		"any other namespace": {
			of: (*Reporter).space, change: func(to cache.ResourceEventHandler) {
				to.OnAdd(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, false)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
				binding("web-deployment", nil), counted.DeepCopy(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "c"}}).Build()
			var events recorder
			r := New(hub, &events)
			tc.change(listener(t.Context(), func(ctx context.Context, before, after any) { tc.of(r, ctx, before, after) }))
			if diff := cmp.Diff(tc.want, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatLoopsReportThemselves: what the reporter reports is not reported by the loop, too,
// that did it.
func TestWhatLoopsReportThemselves(t *testing.T) {
	var got recorder
	loops := New(nil, &got).Loops()
	for _, e := range [][2]string{
		{corev1.EventTypeNormal, workv1alpha2.EventReasonScheduleBindingSucceed},
		{corev1.EventTypeWarning, workv1alpha2.EventReasonScheduleBindingFailed},
		{corev1.EventTypeNormal, workv1alpha2.EventReasonEvictWorkloadFromClusterSucceed},
		{corev1.EventTypeWarning, workv1alpha2.EventReasonEvictWorkloadFromClusterFailed},
		{corev1.EventTypeNormal, "Preempted"},
	} {
		loops.Event(binding("web-deployment", nil), e[0], e[1], "")
	}
	want := recorder{"shop/web-deployment " + workv1alpha2.EventReasonEvictWorkloadFromClusterFailed, "shop/web-deployment Preempted"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
