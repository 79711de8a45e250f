package request

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1alpha1 "github.com/flotilla-io/flotilla/api/apps/v1alpha1"
	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestRebalance: what was asked for is reported, and where it runs then, or why it stays.
func TestRebalance(t *testing.T) {
	asked := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: time.Now().Add(time.Hour)}
	}
	nowhere := func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters, b.Spec.ReplicaRequirements = nil, nil }
	suspended := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: ptr.To(true)}
	}
	bound := func(reason, message string, edits ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
		out := &workv1alpha2.ResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", Annotations: placement.Decision{
				AppliedPlacement: placement.AppliedPlacement(nil), Record: placement.Record{Reason: reason, Message: message},
			}.Annotations()},
			Spec: workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{{Name: "east", Replicas: 2}, {Name: "west", Replicas: 2}}, Replicas: 2, ReplicaRequirements: &workv1alpha2.ReplicaRequirements{}},
		}
		for _, edit := range edits {
			edit(out)
		}
		return out
	}
	lost := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
	lost.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterNotReachableReason,
		LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))}}
	for name, tc := range map[string]struct {
		observed  appsv1alpha1.ObservedWorkload
		there     []client.Object
		says, err string
	}{
		"it is placed": {
			observed: appsv1alpha1.ObservedWorkload{Result: appsv1alpha1.RebalanceSuccessful}, there: []client.Object{bound(workv1alpha2.BindingReasonSuccess, "")},
			says: "✔ Deployment shop/web is placed in {east:2, west:2}\n",
		},
		"a cluster that it is placed in is lost": {
			observed: appsv1alpha1.ObservedWorkload{Result: appsv1alpha1.RebalanceSuccessful}, there: []client.Object{bound(workv1alpha2.BindingReasonSuccess, ""), lost},
			says: "✔ Deployment shop/web is placed in {east:2, west:2}; west is unreachable since 2026-01-02 12:00 UTC\n",
		},
		"no policy carries it": {err: "Deployment shop/web is not placed anew: no policy carries it: flotilla explain deployment/web -n shop"},
		"no policy carries it any more": {
			observed: appsv1alpha1.ObservedWorkload{Result: appsv1alpha1.RebalanceFailed, Reason: appsv1alpha1.RebalanceObjectNotFound}, there: []client.Object{bound(workv1alpha2.BindingReasonSuccess, "")},
			err: "Deployment shop/web is not placed anew: no policy carries it: flotilla explain deployment/web -n shop",
		},
		"there is no room": {
			observed: appsv1alpha1.ObservedWorkload{Result: appsv1alpha1.RebalanceSuccessful}, there: []client.Object{bound(workv1alpha2.BindingReasonUnschedulable, "no room")},
			err: "Deployment shop/web stays in {east:2, west:2}: no room: flotilla explain deployment/web -n shop",
		},
		"there is no room, as before": {
			observed: appsv1alpha1.ObservedWorkload{Result: appsv1alpha1.RebalanceSuccessful}, there: []client.Object{bound(workv1alpha2.BindingReasonUnschedulable, "no room", asked)},
			err: "Deployment shop/web stays in {east:2, west:2}: no room: flotilla explain deployment/web -n shop",
		},
		"it has no place, as before": {
			observed: appsv1alpha1.ObservedWorkload{Result: appsv1alpha1.RebalanceSuccessful}, there: []client.Object{bound(workv1alpha2.BindingReasonNoClusterFit, "0/1 clusters are available: 1 is full.", asked, nowhere)},
			err: "Deployment shop/web is placed nowhere: 0/1 clusters are available: 1 is full: flotilla explain deployment/web -n shop",
		},
		"its scheduling is suspended": {
			observed: appsv1alpha1.ObservedWorkload{Result: appsv1alpha1.RebalanceSuccessful}, there: []client.Object{bound(workv1alpha2.BindingReasonSuccess, "", asked, suspended)},
			err: "Deployment shop/web stays in {east:2, west:2}: its scheduling is suspended, by suspension.scheduling of its policy: flotilla explain deployment/web -n shop",
		},
		"nobody decides": {
			observed: appsv1alpha1.ObservedWorkload{Result: appsv1alpha1.RebalanceSuccessful}, there: []client.Object{bound(workv1alpha2.BindingReasonSuccess, "", asked)},
			err: "wait for the placement of Deployment shop/web: the time of --timeout is over: flotilla explain deployment/web -n shop",
		},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.there...).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, hub client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					rebalancer := obj.(*appsv1alpha1.WorkloadRebalancer)
					tc.observed.Workload = rebalancer.Spec.Workloads[0]
					rebalancer.Status = appsv1alpha1.WorkloadRebalancerStatus{FinishTime: &metav1.Time{Time: time.Now()}, ObservedWorkloads: []appsv1alpha1.ObservedWorkload{tc.observed}}
					return hub.Create(ctx, obj, opts...)
				},
			}).Build()
			web := &unstructured.Unstructured{}
			web.SetAPIVersion("apps/v1")
			web.SetKind("Deployment")
			web.SetNamespace("shop")
			web.SetName("web")
			var out strings.Builder
			r := &requester{hub: hub, clock: clock.RealClock{}, out: &out, timeout: 10 * time.Second}
			failed := ""
			if err := r.rebalance(t.Context(), []*unstructured.Unstructured{web}); err != nil {
				failed = err.Error()
			}
			if failed != tc.err {
				t.Errorf("error %q, want %q", failed, tc.err)
			}
			_, says, _ := strings.Cut(out.String(), "\n")
			if diff := cmp.Diff(tc.says, says); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		}))
	}
}

// inBubble has a test wait by a clock of its own.
func inBubble(f func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { synctest.Test(t, f) }
}

// TestWhatIsNotThereToRebalance: the next step asks in the namespace that was asked in.
func TestWhatIsNotThereToRebalance(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind), meta.RESTScopeNamespace)
	there := kustomization("web", metav1.ConditionTrue, "ReconciliationSucceeded", "Applied")
	r := &requester{hub: fake.NewClientBuilder().WithScheme(scheme.New()).WithRESTMapper(mapper).WithObjects(there).Build(), namespace: "team"}
	missing := apierrors.NewNotFound(kustomizev1.GroupVersion.WithResource("kustomizations").GroupResource(), "wbe")
	const want = `kustomizations.kustomize.toolkit.fluxcd.io "wbe" not found (did you mean web?): flotilla get kustomizations.kustomize.toolkit.fluxcd.io -n team lists what there is`
	if got := r.absent(t.Context(), missing); got.Error() != want {
		t.Errorf("says %q, want %q", got, want)
	}
}
