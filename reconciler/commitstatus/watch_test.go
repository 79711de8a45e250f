package commitstatus

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

func TestAnOwnWriteCountsUntilTheCacheHasShownItOrItsEnd(t *testing.T) {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop"}}
	r := New(fake.NewClientBuilder().WithScheme(scheme.New()).Build(), nil, nil, Options{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))})
	written := &gitopsv1alpha1.CommitStatus{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop-forge", ResourceVersion: "7"},
		Spec:       gitopsv1alpha1.CommitStatusSpec{KustomizationRef: &gitopsv1alpha1.LocalReference{Name: "shop"}},
	}
	count := func() int {
		existing, err := r.statuses.of(t.Context(), ks.Namespace, aboutKustomization(ks.Name))
		if err != nil {
			t.Fatal(err)
		}
		return len(existing)
	}
	r.statuses.wrote(t.Context(), written)
	if got := count(); got != 1 {
		t.Errorf("%d commit statuses right after one was written", got)
	}
	events := wakes{statuses: r.statuses}.statusEvents()
	if events.Create(event.CreateEvent{Object: written}) {
		t.Error("an own write is looked into")
	}
	if !events.Delete(event.DeleteEvent{Object: written}) {
		t.Error("a loss is not looked into")
	}
	if got := count(); got != 0 {
		t.Errorf("%d commit statuses after the only one was removed", got)
	}
}

// TestWhichClustersWakeTheLoop: one that comes or goes may be one that a commit names, and one that falls
// silent may run what a commit asks for; what else is new of clusters changes no commit.
func TestWhichClustersWakeTheLoop(t *testing.T) {
	cluster := func(version string, ready metav1.ConditionStatus) *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
		c.Status.KubernetesVersion = version
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: ready}}
		return c
	}
	well, newer, silent := cluster("v1.35.0", metav1.ConditionTrue), cluster("v1.36.0", metav1.ConditionTrue), cluster("v1.35.0", metav1.ConditionFalse)
	for name, tc := range map[string]struct{ got, want bool }{
		"one joins":        {fleetChanges.Create(event.CreateEvent{Object: well}), true},
		"one leaves":       {fleetChanges.Delete(event.DeleteEvent{Object: well}), true},
		"one falls silent": {fleetChanges.Update(event.UpdateEvent{ObjectOld: well, ObjectNew: silent}), true},
		"one is upgraded":  {fleetChanges.Update(event.UpdateEvent{ObjectOld: well, ObjectNew: newer}), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: it is news: %t, want %t", name, tc.got, tc.want)
		}
	}
}

// woken is a queue that only notes what is to be looked at.
type woken struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	requests []reconcile.Request
}

func (w *woken) AddAfter(req reconcile.Request, _ time.Duration) {
	w.requests = append(w.requests, req)
}

// TestWhichWorksWakeTheLoop: a cluster that has caught up with the latest of a Work is news to the commit also where the
// binding says the same as before.
func TestWhichWorksWakeTheLoop(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-service"}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "web"}
	r := New(fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(b).Build(), nil, nil, Options{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))})
	owner := client.ObjectKey{Namespace: "flux-system", Name: "web"}
	r.followed.own(owner, []inventory.Entry{{ID: inventory.ID{GroupKind: schema.GroupKind{Kind: "Service"}, Namespace: "shop", Name: "web"}, Version: "v1"}}, nil)
	work := func(generation, applied int64, of string) *workv1alpha1.Work {
		out := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: generation, Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "y"}, Annotations: map[string]string{
			workv1alpha2.ResourceBindingNamespaceAnnotationKey: "shop", workv1alpha2.ResourceBindingNameAnnotationKey: of,
		}}}
		if applied > 0 {
			out.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: applied}}
		}
		return out
	}
	says := func(w *workv1alpha1.Work, why string) *workv1alpha1.Work {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkPodsReady, Status: metav1.ConditionFalse, Reason: why, Message: why, ObservedGeneration: w.Generation})
		return w
	}
	for name, tc := range map[string]struct {
		was, is *workv1alpha1.Work
		want    bool
	}{
		"its Pods say why they do not start":     {work(2, 2, "web-service"), says(work(2, 2, "web-service"), "ErrImagePull"), true},
		"they say another thing":                 {says(work(2, 2, "web-service"), "ErrImagePull"), says(work(2, 2, "web-service"), "CrashLoopBackOff"), true},
		"they say the same":                      {says(work(2, 2, "web-service"), "ErrImagePull"), says(work(2, 2, "web-service"), "ErrImagePull"), false},
		"they have nothing to say any more":      {says(work(2, 2, "web-service"), "ErrImagePull"), work(2, 2, "web-service"), true},
		"it has caught up":                       {work(2, 1, "web-service"), work(2, 2, "web-service"), true},
		"it has yet to":                          {work(1, 1, "web-service"), work(2, 1, "web-service"), false},
		"it had before":                          {work(2, 2, "web-service"), work(2, 2, "web-service"), false},
		"the first time, which the binding says": {work(1, 0, "web-service"), work(1, 1, "web-service"), false},
		"of a binding that is gone":              {work(2, 1, "gone"), work(2, 2, "gone"), false},
	} {
		t.Run(name, func(t *testing.T) {
			queue := &woken{}
			wakes{hub: r.hub, followed: r.followed}.whenWorkChanges().Update(t.Context(), event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}, queue)
			if got := len(queue.requests) == 1 && queue.requests[0].NamespacedName == owner; got != tc.want || len(queue.requests) > 1 {
				t.Errorf("woken: %v", queue.requests)
			}
		})
	}
}

// TestWhosePoliciesWakeTheLoop: a policy or an override that is changed concerns the commit of who applied it, and no other one.
func TestWhosePoliciesWakeTheLoop(t *testing.T) {
	r := New(fake.NewClientBuilder().WithScheme(scheme.New()).Build(), nil, nil, Options{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))})
	owner := client.ObjectKey{Namespace: "flux-system", Name: "policies"}
	entry := func(kind string) inventory.Entry {
		return inventory.Entry{ID: inventory.ID{GroupKind: schema.GroupKind{Group: policyv1alpha1.GroupName, Kind: kind}, Namespace: "shop", Name: "web"}, Version: "v1alpha1"}
	}
	r.followed.own(owner, []inventory.Entry{entry("PropagationPolicy"), entry("OverridePolicy")}, nil)
	own := metav1.ObjectMeta{Namespace: "shop", Name: "web"}
	for name, tc := range map[string]struct {
		policy client.Object
		want   []reconcile.Request
	}{
		"its own":                      {&policyv1alpha1.PropagationPolicy{ObjectMeta: own}, []reconcile.Request{{NamespacedName: owner}}},
		"another one":                  {&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "bar", Name: "web"}}, nil},
		"of another scope":             {&policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, nil},
		"its own override":             {&policyv1alpha1.OverridePolicy{ObjectMeta: own}, []reconcile.Request{{NamespacedName: owner}}},
		"an override of another scope": {&policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, wakes{hub: r.hub, followed: r.followed}.ofRule(t.Context(), tc.policy)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatAnotherOneComesToHold: that another Kustomization holds an object, too, or does no longer, concerns the commit of who has it.
func TestWhatAnotherOneComesToHold(t *testing.T) {
	r := New(fake.NewClientBuilder().WithScheme(scheme.New()).Build(), nil, nil, Options{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))})
	role := inventory.Entry{ID: inventory.ID{GroupKind: schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}, Namespace: "shop", Name: "web"}, Version: "v1"}
	owner := client.ObjectKey{Namespace: "flux-system", Name: "web"}
	r.followed.own(owner, []inventory.Entry{role}, nil)
	version := func(name string, change func(*kustomizev1.Kustomization), entries ...inventory.Entry) *kustomizev1.Kustomization {
		ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}}
		ks.Status.Inventory = inventory.Record(entries)
		if change != nil {
			change(ks)
		}
		return ks
	}
	suspend := func(ks *kustomizev1.Kustomization) { ks.Spec.Suspend = true }
	itself := []reconcile.Request{{NamespacedName: owner}}
	for name, tc := range map[string]struct {
		was, is *kustomizev1.Kustomization // nil: it is gone
		want    []reconcile.Request
	}{
		"it comes to hold it":    {version("other", nil), version("other", nil, role), itself},
		"it gives it up":         {version("other", nil, role), version("other", nil), itself},
		"it is suspended":        {version("other", nil, role), version("other", suspend, role), itself},
		"it goes on":             {version("other", suspend, role), version("other", nil, role), itself},
		"it is gone":             {version("other", nil, role), nil, itself},
		"it has it, as before":   {version("other", nil, role), version("other", nil, role), nil},
		"it is the one itself":   {version("web", nil), version("web", nil, role), nil},
		"it was suspended, gone": {version("other", suspend, role), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			queue, handler := &woken{}, wakes{hub: r.hub, followed: r.followed}.whenAnotherHoldsIt()
			if tc.is == nil {
				handler.Delete(t.Context(), event.DeleteEvent{Object: tc.was}, queue)
			} else {
				handler.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}, queue)
			}
			if diff := cmp.Diff(tc.want, queue.requests); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
