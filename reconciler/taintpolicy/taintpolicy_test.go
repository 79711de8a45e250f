package taintpolicy

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func clusterOf(name string, network metav1.ConditionStatus) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "c-1"}}
	c.Spec.Taints = []corev1.Taint{{Key: "mine", Effect: corev1.TaintEffectNoExecute}}
	c.Status.Conditions = []metav1.Condition{{Type: "NetworkReady", Status: network}}
	return c
}

// offline taints clusters while NetworkReady is not True.
func offline() *policyv1alpha1.ClusterTaintPolicy {
	on := func(o policyv1alpha1.MatchConditionOperator) []policyv1alpha1.MatchCondition {
		return []policyv1alpha1.MatchCondition{{ConditionType: "NetworkReady", Operator: o, StatusValues: []metav1.ConditionStatus{metav1.ConditionTrue}}}
	}
	return &policyv1alpha1.ClusterTaintPolicy{ObjectMeta: metav1.ObjectMeta{Name: "offline", Generation: 1}, Spec: policyv1alpha1.ClusterTaintPolicySpec{
		AddOnConditions: on(policyv1alpha1.MatchConditionOpNotIn), RemoveOnConditions: on(policyv1alpha1.MatchConditionOpIn),
		Taints: []policyv1alpha1.Taint{{Key: "offline", Effect: corev1.TaintEffectNoSchedule}},
	}}
}

// plane is a hub with the loop, which keeps what is written and told.
type plane struct {
	*testing.T
	client.Client
	loop   *Reconciler
	writes []string
	events []string
	refuse error // what writes of taints are answered with
}

func planeOf(t *testing.T, objects ...client.Object) *plane {
	t.Helper()
	p := &plane{T: t}
	p.Client = fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(&clusterv1alpha1.Cluster{}).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if p.refuse != nil {
					return p.refuse
				}
				data, err := patch.Data(obj)
				if err != nil {
					return err
				}
				p.writes = append(p.writes, string(data))
				return c.Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	p.loop = New(p.Client, p, Options{Clock: clocktesting.NewFakePassiveClock(noon)})
	return p
}

// Event implements loop.Recorder.
func (p *plane) Event(obj runtime.Object, eventType, reason, message string) {
	p.events = append(p.events, fmt.Sprintf("%s %s %s: %s", obj.(client.Object).GetName(), eventType, reason, message))
}

func (p *plane) reconcile() (reconcile.Result, error) {
	return p.loop.Reconcile(p.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "eu-1"}})
}

func (p *plane) mustReconcile() {
	p.Helper()
	if result, err := p.reconcile(); err != nil || !result.IsZero() {
		p.Fatalf("another look: %v, error: %v", result, err)
	}
}

func (p *plane) want(what string, want, got []string) {
	p.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		p.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestTaintsFollowConditions(t *testing.T) {
	p := planeOf(t, clusterOf("eu-1", metav1.ConditionUnknown), clusterOf("eu-2", metav1.ConditionUnknown), offline())
	p.mustReconcile()
	p.mustReconcile()
	writes := []string{`{"metadata":{"resourceVersion":"999"},"spec":{"taints":[{"effect":"NoExecute","key":"mine"},{"effect":"NoSchedule","key":"offline","timeAdded":"2026-01-02T12:00:00Z"}]}}`}
	events := []string{"eu-1 Normal TaintClusterSucceed: added offline:NoSchedule"}
	p.want("writes", writes, p.writes)
	p.want("events", events, p.events)

	cluster := &clusterv1alpha1.Cluster{}
	if err := p.Get(t.Context(), client.ObjectKey{Name: "eu-1"}, cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Status.Conditions[0].Status = metav1.ConditionTrue
	if err := p.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	p.mustReconcile()
	p.mustReconcile()
	writes = append(writes, `{"metadata":{"resourceVersion":"1001"},"spec":{"taints":[{"effect":"NoExecute","key":"mine"}]}}`)
	p.want("writes", writes, p.writes)
	p.want("events", append(events, "eu-1 Normal TaintClusterSucceed: removed offline:NoSchedule"), p.events)
}

func TestAPolicyThatGoesTakesNothingOff(t *testing.T) {
	p := planeOf(t, clusterOf("eu-1", metav1.ConditionUnknown), offline())
	p.mustReconcile()
	if err := p.Delete(t.Context(), offline()); err != nil {
		t.Fatal(err)
	}
	p.mustReconcile()
	if len(p.writes) != 1 {
		t.Errorf("%d writes: %v", len(p.writes), p.writes)
	}
}

func TestWritesThatFail(t *testing.T) {
	kind := schema.GroupResource{Group: "cluster.karmada.io", Resource: "clusters"}
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		refuse     error
		wantErr    error
		wantResult reconcile.Result
		wantEvents []string
	}{
		"what somebody changed meanwhile is looked at again": {
			refuse: apierrors.NewConflict(kind, "eu-1", boom), wantResult: reconcile.Result{RequeueAfter: stale},
		},
		"a cluster that is gone needs no taints": {refuse: apierrors.NewNotFound(kind, "eu-1")},
		"a refusal is told, and tried again": {
			refuse: apierrors.NewForbidden(kind, "eu-1", boom), wantErr: apierrors.NewForbidden(kind, "eu-1", boom),
			wantEvents: []string{`eu-1 Warning TaintClusterFailed: clusters.cluster.karmada.io "eu-1" is forbidden: boom`},
		},
		"a fault that may pass is only tried again": {refuse: boom, wantErr: boom},
	} {
		t.Run(name, func(t *testing.T) {
			p := planeOf(t, clusterOf("eu-1", metav1.ConditionFalse), offline())
			p.refuse = tc.refuse
			result, err := p.reconcile()
			if (err != nil) != (tc.wantErr != nil) || tc.wantErr != nil && apierrors.ReasonForError(err) != apierrors.ReasonForError(tc.wantErr) {
				t.Errorf("error = %v, want %v", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.wantResult, result); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			p.want("events", tc.wantEvents, p.events)
		})
	}
}

func TestClustersThatAreLeftAlone(t *testing.T) {
	leaving := clusterOf("eu-1", metav1.ConditionFalse)
	leaving.Finalizers, leaving.DeletionTimestamp = []string{clusterv1alpha1.ClusterControllerFinalizer}, &metav1.Time{Time: noon}
	for name, objects := range map[string][]client.Object{
		"one that is gone":                    {offline()},
		"one that is being deleted":           {leaving, offline()},
		"one that no policy has a say about":  {clusterOf("eu-1", metav1.ConditionTrue), offline()},
		"one that there are no policies for":  {clusterOf("eu-1", metav1.ConditionFalse)},
		"one beside another that is offline ": {clusterOf("eu-2", metav1.ConditionFalse), offline()},
	} {
		t.Run(name, func(t *testing.T) {
			p := planeOf(t, objects...)
			p.mustReconcile()
			p.want("writes", nil, p.writes)
			p.want("events", nil, p.events)
		})
	}
}

func TestClusterChanges(t *testing.T) {
	edited := func(edit func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
		c := clusterOf("eu-1", metav1.ConditionTrue)
		edit(c)
		return c
	}
	for name, tc := range map[string]struct {
		edit func(*clusterv1alpha1.Cluster)
		want bool
	}{
		"taints alone":            {func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = nil }, false},
		"the rest of the status":  {func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v1.36.4" }, false},
		"a message of conditions": {func(c *clusterv1alpha1.Cluster) { c.Status.Conditions[0].Message = "well" }, false},
		"a status of conditions":  {func(c *clusterv1alpha1.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionFalse }, true},
		"one more condition": {func(c *clusterv1alpha1.Cluster) {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: "StorageReady"})
		}, true},
		"no condition any more": {func(c *clusterv1alpha1.Cluster) { c.Status.Conditions = nil }, true},
		"a label":               {func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"tier": "gold"} }, true},
		"an annotation":         {func(c *clusterv1alpha1.Cluster) { c.Annotations = map[string]string{"note": "x"} }, false},
		"a region":              {func(c *clusterv1alpha1.Cluster) { c.Spec.Region = "eu" }, true},
		"zones":                 {func(c *clusterv1alpha1.Cluster) { c.Spec.Zones = []string{"eu-1a"} }, true},
		"another cluster":       {func(c *clusterv1alpha1.Cluster) { c.UID = "c-2" }, true},
	} {
		got := clusterChanges().Update(event.UpdateEvent{ObjectOld: clusterOf("eu-1", metav1.ConditionTrue), ObjectNew: edited(tc.edit)})
		if got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
	if !clusterChanges().Create(event.CreateEvent{Object: clusterOf("eu-1", metav1.ConditionTrue)}) {
		t.Error("a new cluster is not looked at")
	}
	if clusterChanges().Delete(event.DeleteEvent{Object: clusterOf("eu-1", metav1.ConditionTrue)}) {
		t.Error("a cluster that is gone is looked at")
	}
}

func TestPolicyChanges(t *testing.T) {
	next := offline()
	next.Generation = 2
	for name, tc := range map[string]struct{ got, want bool }{
		"a new policy":           {policyChanges().Create(event.CreateEvent{Object: next}), true},
		"one that a start finds": {policyChanges().Create(event.CreateEvent{Object: next, IsInInitialList: true}), false},
		"another spec":           {policyChanges().Update(event.UpdateEvent{ObjectOld: offline(), ObjectNew: next}), true},
		"another label":          {policyChanges().Update(event.UpdateEvent{ObjectOld: next, ObjectNew: next}), false},
		"its end":                {policyChanges().Delete(event.DeleteEvent{Object: next}), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %t, want %t", name, tc.got, tc.want)
		}
	}
	p := planeOf(t, clusterOf("eu-1", metav1.ConditionTrue), clusterOf("eu-2", metav1.ConditionTrue))
	var names []string
	for _, request := range p.loop.all(t.Context(), next) {
		names = append(names, request.String())
	}
	p.want("clusters to look at", []string{"/eu-1", "/eu-2"}, names)
}
