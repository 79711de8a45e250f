package scheduler

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/decider"
)

var onBoth = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}, {Name: "m2", Replicas: 2}}

func leaves(c *clusterv1alpha1.Cluster) {
	c.Finalizers = []string{clusterv1alpha1.ClusterControllerFinalizer}
	c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
}

// overQuota is the server's answer if a quota refuses a placement.
var overQuota = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: workv1alpha2.BindingReasonQuotaExceeded, Message: "quota team-a: cpu: 3 of 2",
}}

type recorder []string

func (r *recorder) Event(obj runtime.Object, _, reason, _ string) {
	if _, is := obj.(workv1alpha2.Binding); is {
		*r = append(*r, "its binding "+reason)
		return
	}
	*r = append(*r, obj.(*corev1.ObjectReference).Name+" "+reason)
}

// failed are the events if "web" was not placed.
var failed = recorder{"web ScheduleBindingFailed", "its binding ScheduleBindingFailed"}

func TestReconcile(t *testing.T) {
	cases := map[string]struct {
		binding  *workv1alpha2.ResourceBinding
		clusters []client.Object
		patchErr error
		refuses  string // what a refusal answers; empty: all placements
		want     string // the placement afterwards
		retries  bool
		events   recorder
		err      bool
	}{
		"a binding that somebody made without a placement": {
			binding: bound(), clusters: []client.Object{cluster("m1"), cluster("m2")},
			want: "{m1:2, m2:2}", events: recorder{"web ScheduleBindingSucceed"},
		},
		"no cluster fits": {
			binding: bound(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"other"}}
				b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}}
			}), clusters: []client.Object{cluster("m1")},
			want: "{m1:2}", events: failed,
		},
		"where it runs looks unsuitable but is still wanted": {
			binding: bound(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}}
			}),
			clusters: []client.Object{cluster("m1", func(c *clusterv1alpha1.Cluster) {
				c.Status.APIEnablements = nil
				c.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoSchedule}}
			})},
			want: "{m1:2}", events: recorder{"web ScheduleBindingSucceed"},
		},
		"there is no room": {
			binding: bound(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 3, MaxGroups: 3}}
			}), clusters: []client.Object{cluster("m1")},
			want: "{}", retries: true, events: failed,
		},
		"another scheduler's": {
			binding: bound(func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "mine" }), clusters: []client.Object{cluster("m1")},
			want: "{}",
		},
		"no policy carries it": {
			binding: bound(func(b *workv1alpha2.ResourceBinding) { b.Labels = nil }), clusters: []client.Object{cluster("m1")},
			want: "{}",
		},
		"a quota is used up": {
			binding: bound(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}}
			}), clusters: []client.Object{cluster("m1"), cluster("m2")},
			patchErr: overQuota, want: "{m1:1}", retries: true, events: failed,
		},
		"a quota is used up, and a cluster leaves": {
			binding: divided("web", 8, func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = onBoth }), clusters: []client.Object{cluster("m1", leaves), cluster("m2", capacity(20))},
			patchErr: overQuota, refuses: `"replicas":8`, want: "{m2:2}", retries: true, events: failed,
		},
		"admission refuses whatever is placed, and a cluster leaves": {
			binding: divided("web", 8, func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = onBoth }), clusters: []client.Object{cluster("m1", leaves), cluster("m2", capacity(20))},
			patchErr: overQuota, want: placement.Text(onBoth), retries: true, events: failed,
		},
		"admission refuses the placement": {
			binding: bound(), clusters: []client.Object{cluster("m1")},
			patchErr: apierrors.NewForbidden(schema.GroupResource{Resource: "resourcebindings"}, "web", errors.New("not on m1")),
			want:     "{}", retries: true, events: failed,
		},
		"no policy carries it, and a cluster leaves": {
			binding: bound(func(b *workv1alpha2.ResourceBinding) { b.Labels, b.Spec.Clusters = nil, onBoth }), clusters: []client.Object{cluster("m1", leaves), cluster("m2")},
			want: "{m2:2}",
		},
		"no policy carries it, and a cluster is not known": {
			binding: bound(func(b *workv1alpha2.ResourceBinding) { b.Labels, b.Spec.Clusters = nil, onBoth }), clusters: []client.Object{cluster("m2")},
			want: placement.Text(onBoth),
		},
		"its scheduling is suspended, and a cluster leaves": {
			binding: bound(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Suspension, b.Spec.Clusters = &workv1alpha2.Suspension{Scheduling: ptr.To(true)}, onBoth
			}), clusters: []client.Object{cluster("m1", leaves), cluster("m2")},
			want: "{m2:2}",
		},
		"there is no room, and a cluster leaves": {
			binding: divided("web", 5, func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 3}, {Name: "m2", Replicas: 2}}
			}), clusters: []client.Object{cluster("m1", leaves), cluster("m2", capacity(2))},
			want: "{m2:2}", retries: true, events: failed,
		},
		"another scheduler's, and a cluster leaves": {
			binding: bound(func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName, b.Spec.Clusters = "mine", onBoth }), clusters: []client.Object{cluster("m1", leaves), cluster("m2")},
			want: "{m1:2, m2:2}",
		},
		"a cluster leaves": {
			binding: bound(func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = onBoth }), clusters: []client.Object{cluster("m1", leaves), cluster("m2")},
			want: "{m2:2}", events: recorder{"web ScheduleBindingSucceed"},
		},
		"it changed meanwhile": {
			binding: bound(), clusters: []client.Object{cluster("m1")},
			patchErr: stale(), want: "{}",
		},
		"the server is away": {
			binding: bound(), clusters: []client.Object{cluster("m1")},
			patchErr: errors.New("refused"), want: "{}", err: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.refuses == "" {
				tc.refuses = "/spec/clusters"
			}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(append(tc.clusters, tc.binding)...).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					data, err := patch.Data(obj)
					if err != nil {
						return err
					}
					if refusal := tc.patchErr; refusal != nil && (!bindings.IsRefused(refusal) || strings.Contains(string(data), tc.refuses)) {
						return refusal
					}
					return c.Patch(ctx, obj, patch, opts...)
				},
			}).Build()
			var events recorder
			clock := clocktesting.NewFakeClock(time.Unix(0, 0))
			r := New(hub, decider.New(hub, decider.Options{Clock: clock}), &events, Options{Clock: clock})
			req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(tc.binding)}
			result, err := r.Reconcile(t.Context(), req)
			if (err != nil) != tc.err {
				t.Fatalf("error = %v", err)
			}
			if (result.RequeueAfter > 0) != tc.retries {
				t.Errorf("looks again after %v", result.RequeueAfter)
			}
			got := &workv1alpha2.ResourceBinding{}
			if err := hub.Get(t.Context(), req.NamespacedName, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, placement.Text(got.Spec.Clusters)); diff != "" {
				t.Errorf("placement (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.events, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			version := got.ResourceVersion
			if _, err := r.Reconcile(t.Context(), req); (err != nil) != tc.err {
				t.Fatalf("second time: %v", err)
			}
			if err := hub.Get(t.Context(), req.NamespacedName, got); err != nil {
				t.Fatal(err)
			}
			if got.ResourceVersion != version {
				t.Error("the second time wrote again")
			}
		})
	}
}

// TestAQuotaForbidsNoMoveOfWhatRuns: a template that wants more replicas than its quota allows, and has to leave a cluster, does so
// with those that it has.
func TestAQuotaForbidsNoMoveOfWhatRuns(t *testing.T) {
	drains := func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = []corev1.Taint{failover.DrainTaint()}
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
	}
	for name, tc := range map[string]struct {
		refuses string
		want    []string // the placement, and whether it was refused, after each pass
	}{
		"it refuses more":       {`"replicas":8`, []string{"{m2:4} Success", "{m2:4} QuotaExceeded", "{m2:4} QuotaExceeded"}},
		"it refuses every move": {`"/spec/clusters"`, []string{"{m1:2, m2:2} QuotaExceeded", "{m1:2, m2:2} QuotaExceeded"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := divided("web", 8, func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = onBoth })
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(cluster("m1", capacity(20), drains), cluster("m2", capacity(20)), b).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					if data, err := patch.Data(obj); err != nil || strings.Contains(string(data), tc.refuses) {
						return overQuota
					}
					return c.Patch(ctx, obj, patch, opts...)
				},
			}).Build()
			clock := clocktesting.NewFakeClock(time.Unix(100, 0))
			r := New(hub, decider.New(hub, decider.Options{Clock: clock}), &recorder{}, Options{Clock: clock, EvictionRate: 100})
			var got []string
			for range tc.want {
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}); err != nil {
					t.Fatal(err)
				}
				is := &workv1alpha2.ResourceBinding{}
				if err := hub.Get(t.Context(), client.ObjectKeyFromObject(b), is); err != nil {
					t.Fatal(err)
				}
				record, _ := placement.RecordOf(is)
				got = append(got, placement.Text(is.Spec.Clusters)+" "+record.Reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhichHealthIsAChange: only the begin or end of ill health counts, and only with application failover; and any health of what leaves a
// cluster as a whole.
func TestWhichHealthIsAChange(t *testing.T) {
	with := func(moves bool, since *metav1.Time) *workv1alpha2.ResourceBinding {
		b := bound()
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", UnhealthySince: since}}
		if moves {
			b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{}}
		}
		return b
	}
	since := &metav1.Time{Time: time.Unix(1000, 0)}
	leaving := func(health workv1alpha2.ResourceHealth, preference policyv1alpha1.ReplicaSchedulingType) *workv1alpha2.ResourceBinding {
		b := with(false, nil)
		b.Status.AggregatedStatus[0].Health = health
		b.Spec.Replicas, b.Spec.GracefulEvictionTasks = 1, []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1"}}
		b.Spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: preference}}
		return b
	}
	const whole, divided = policyv1alpha1.ReplicaSchedulingTypeDuplicated, policyv1alpha1.ReplicaSchedulingTypeDivided
	for name, tc := range map[string]struct {
		was, is *workv1alpha2.ResourceBinding
		want    bool
	}{
		"the old copy is well again": {leaving(workv1alpha2.ResourceUnknown, whole), leaving(workv1alpha2.ResourceHealthy, whole), true},
		"the old copy is as it was":  {leaving(workv1alpha2.ResourceHealthy, whole), leaving(workv1alpha2.ResourceHealthy, whole), false},
		"a part of it is well again": {leaving(workv1alpha2.ResourceUnknown, divided), leaving(workv1alpha2.ResourceHealthy, divided), false},
		"it begins":                  {with(true, nil), with(true, since), true},
		"it ends":                    {with(true, since), with(true, nil), true},
		"it goes on":                 {with(true, since), with(true, since), false},
		"nothing is moved for it":    {with(false, nil), with(false, since), false},
		"another one has come, too": {with(true, since), func() *workv1alpha2.ResourceBinding {
			b := with(true, since)
			b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: "m2"})
			return b
		}(), true},
	} {
		if got := decisive().Update(event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestWhatAClusterAffects(t *testing.T) {
	relabel := func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"tier": "test"} }
	prod := &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}}
	test := &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "test"}}}
	none := &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"other"}}
	tainted := func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}}
	}
	says := func(c *clusterv1alpha1.Cluster, kind string, status metav1.ConditionStatus, reason string) {
		c.Status.Conditions = []metav1.Condition{{Type: kind, Status: status, Reason: reason}}
	}
	cases := map[string]struct {
		from   func(*clusterv1alpha1.Cluster) // nil: it is as others are
		change func(*clusterv1alpha1.Cluster)
		spec   workv1alpha2.ResourceBindingSpec
		want   bool
	}{
		"nothing": {change: func(*clusterv1alpha1.Cluster) {}, spec: workv1alpha2.ResourceBindingSpec{}},
		"free resources": {change: func(c *clusterv1alpha1.Cluster) {
			c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{}
		}},
		"a condition": {change: func(c *clusterv1alpha1.Cluster) {
			c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady}}
		}},
		"labels, all clusters are meant":   {change: relabel, spec: workv1alpha2.ResourceBindingSpec{Placement: &policyv1alpha1.Placement{}}, want: true},
		"labels that it had are meant":     {change: relabel, spec: workv1alpha2.ResourceBindingSpec{Placement: &policyv1alpha1.Placement{ClusterAffinity: prod}}, want: true},
		"labels that it gets are meant":    {change: relabel, spec: workv1alpha2.ResourceBindingSpec{Placement: &policyv1alpha1.Placement{ClusterAffinity: test}}, want: true},
		"labels, other clusters are meant": {change: relabel, spec: workv1alpha2.ResourceBindingSpec{Placement: &policyv1alpha1.Placement{ClusterAffinity: none}}},
		"labels, it runs there": {change: relabel, spec: workv1alpha2.ResourceBindingSpec{
			Placement: &policyv1alpha1.Placement{ClusterAffinity: none}, Clusters: []workv1alpha2.TargetCluster{{Name: "m1"}},
		}, want: true},
		"labels, a later term means it": {change: relabel, spec: workv1alpha2.ResourceBindingSpec{Placement: &policyv1alpha1.Placement{
			ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{{ClusterAffinity: *none}, {ClusterAffinity: *test}},
		}}, want: true},
		"it is believed to be lost now": {
			from: func(c *clusterv1alpha1.Cluster) {
				tainted(c)
				says(c, clusterv1alpha1.ClusterConditionMassFailureSuspected, metav1.ConditionTrue, "")
			},
			change: tainted, spec: workv1alpha2.ResourceBindingSpec{}, want: true,
		},
		"it is lost, and not refused only": {
			from: func(c *clusterv1alpha1.Cluster) {
				tainted(c)
				says(c, "Ready", metav1.ConditionFalse, clusterv1alpha1.ClusterCredentialsRefusedReason)
			},
			change: func(c *clusterv1alpha1.Cluster) {
				tainted(c)
				says(c, "Ready", metav1.ConditionFalse, clusterv1alpha1.ClusterNotReachableReason)
			},
			spec: workv1alpha2.ResourceBindingSpec{}, want: true,
		},
		"a taint": {change: func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = []corev1.Taint{{Key: "a"}} }, spec: workv1alpha2.ResourceBindingSpec{}, want: true},
		"an API":  {change: func(c *clusterv1alpha1.Cluster) { c.Status.APIEnablements = nil }, spec: workv1alpha2.ResourceBindingSpec{}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.from == nil {
				tc.from = func(*clusterv1alpha1.Cluster) {}
			}
			before, after := cluster("m1", tc.from), cluster("m1", tc.change)
			if got := matters(before, after) && affects(&tc.spec, before, after); got != tc.want {
				t.Errorf("affects = %v, want %v", got, tc.want)
			}
		})
	}
}
