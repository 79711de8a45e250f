package reconciler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	remedyv1alpha1 "github.com/flotilla-io/flotilla/api/remedy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler"
)

// These are what programs that were written against Karmada do and wait for, row by row: failover of clusters and of
// applications, and quotas.

// registerClients is registerEvictions with quotas, taint policies and remedies, and reports what succeeds as such programs
// expect it.
func registerClients(ctx context.Context, mgr ctrl.Manager) error {
	return reconciler.Register(ctx, mgr, reconciler.Options{
		Controllers: []string{"template", "scheduler", "dependency", "binding", "namespace", "execution", "status", "cluster", "quota", "taintpolicy", "remedy"},
		Scheduling:  reconciler.Scheduling{Failover: reconciler.Failover{Rules: failover.Rules{Taints: true, State: true}}},
		Reporting:   reconciler.ReportKarmada,
	})
}

// reported returns what Events of a reason say of the template of a name and of its binding, by kind.
func (m *moves) reported(ns, name, reason string) map[string][]string {
	m.Helper()
	var events corev1.EventList
	m.check(m.hub.Hub.List(m.Context(), &events, client.InNamespace(ns)))
	out := map[string][]string{}
	for _, e := range events.Items {
		if e.Reason == reason && (e.InvolvedObject.Name == name || e.InvolvedObject.Name == workv1alpha2.BindingName("Deployment", name)) {
			out[e.InvolvedObject.Kind] = append(out[e.InvolvedObject.Kind], e.Message)
		}
	}
	return out
}

// both reports whether an Event of a reason, whose text begins so, is on the template and on its binding.
func (m *moves) both(ns, name, reason, begins string) error {
	m.Helper()
	got := m.reported(ns, name, reason)
	for _, kind := range []string{"Deployment", "ResourceBinding"} {
		if !slices.ContainsFunc(got[kind], func(text string) bool { return strings.HasPrefix(text, begins) }) {
			return fmt.Errorf("%s on %s %s: %q", reason, kind, name, got)
		}
	}
	return nil
}

// tainted has a user taint a cluster, or take that away.
func (m *moves) tainted(cluster, key string, on bool) {
	m.Helper()
	taint := corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute}
	m.check(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		c := &clusterv1alpha1.Cluster{}
		if err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Name: cluster}, c); err != nil {
			return err
		}
		c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
		if on {
			c.Spec.Taints = append(c.Spec.Taints, taint)
		}
		return m.hub.Hub.Update(m.Context(), c)
	}))
}

// names reports whether spec.clusters of "web" are just these.
func (m *moves) names(ns string, clusters ...string) error {
	b, err := m.binding(ns)
	if err != nil {
		return err
	}
	var got []string
	for _, t := range b.Spec.Clusters {
		got = append(got, t.Name)
	}
	if diff := cmp.Diff(clusters, got); diff != "" {
		return fmt.Errorf("spec.clusters (-want +got):\n%s", diff)
	}
	return nil
}

// TestClientsTaintACluster is the row "taint, Gracefully", with a key of the user's and with one that the control plane has
// for a taint of another effect, which must stay although the cluster is ready.
func TestClientsTaintACluster(t *testing.T) {
	m := newMovesWith(t, registerClients)
	for _, key := range []string{"fail-test", clusterv1alpha1.TaintClusterNotReady} {
		t.Run(key, func(t *testing.T) {
			m := m.in(t)
			ns := m.hub.Namespace(t)
			m.start(ns, oneOf(2, policyv1alpha1.PurgeModeGracefully))
			var at, other string
			m.eventually("it runs in one of both", func() error {
				b, err := m.binding(ns)
				if err != nil || len(b.Spec.Clusters) != 1 {
					return errors.Join(err, fmt.Errorf("placed in %v", b.Spec.Clusters))
				}
				if at, other = b.Spec.Clusters[0].Name, from; at == from {
					other = to
				}
				return m.runs(at, ns)
			})
			m.tainted(at, key, true)
			defer m.tainted(at, key, false)
			m.eventually("spec.clusters names only the other one", func() error { return m.names(ns, other) })
			m.eventually("it is told, on the template and on the binding", func() error {
				return m.both(ns, "web", workv1alpha2.EventReasonEvictWorkloadFromClusterSucceed, "Evict from cluster "+at+" succeed.")
			})
			m.hub.QuietRevision(t)
			c := &clusterv1alpha1.Cluster{}
			m.check(m.hub.Hub.Get(m.Context(), client.ObjectKey{Name: at}, c))
			if len(c.Spec.Taints) != 1 || c.Spec.Taints[0].Key != key || !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
				t.Errorf("taints while the cluster is ready: %v; conditions %+v", c.Spec.Taints, c.Status.Conditions)
			}
			m.tainted(at, key, false)
			m.hub.QuietRevision(t)
			if err := errors.Join(m.names(ns, other), m.runs(other, ns), m.gone(at, ns)); err != nil {
				t.Errorf("once the taint is gone: %v", err)
			}
		})
	}
}

// report writes conditions of a Cluster as such programs do, without a reason.
func (m *moves) report(cluster string, status metav1.ConditionStatus, conditions ...string) {
	m.Helper()
	m.check(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		c := &clusterv1alpha1.Cluster{}
		if err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Name: cluster}, c); err != nil {
			return err
		}
		for _, condition := range conditions {
			meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: condition, Status: status})
		}
		return m.hub.Hub.Status().Update(m.Context(), c)
	}))
}

// cluster returns a Cluster in words: its taints, conditions, and what is to be done about it.
func (m *moves) cluster(name string) (words, pods string) {
	m.Helper()
	c := &clusterv1alpha1.Cluster{}
	m.check(m.hub.Hub.Get(m.Context(), client.ObjectKey{Name: name}, c))
	var taints, conditions []string
	for i := range c.Spec.Taints {
		taints = append(taints, c.Spec.Taints[i].ToString())
	}
	for _, is := range c.Status.Conditions {
		if slices.Contains([]string{clusterv1alpha1.ClusterConditionReady, "NetworkReady", "StorageReady"}, is.Type) {
			conditions = append(conditions, is.Type+" "+string(is.Status))
		}
	}
	slices.Sort(taints)
	slices.Sort(conditions)
	return fmt.Sprint(taints, conditions, c.Status.RemedyActions), c.Status.ResourceSummary.Allocated.Pods().String()
}

// TestClientsReportConditions are the rows about conditions of types that nobody knows, on a cluster whose status is read by
// the control plane: they stand beside what that writes, and ClusterTaintPolicies and Remedies act on them.
func TestClientsReportConditions(t *testing.T) {
	m := newMovesWith(t, registerClients)
	ns := m.hub.Namespace(t)
	m.start(ns, oneOf(0, policyv1alpha1.PurgeModeGracefully))
	m.edit(ns, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement.ClusterAffinity.ClusterNames = []string{from}
	})
	m.eventually("it runs in the first", func() error { return errors.Join(m.runs(from, ns), m.gone(to, ns)) })
	m.edit(ns, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement.ClusterAffinity.ClusterNames = []string{from, to}
	})
	when := func(o policyv1alpha1.MatchConditionOperator) []policyv1alpha1.MatchCondition {
		return []policyv1alpha1.MatchCondition{{ConditionType: "NetworkReady", Operator: o, StatusValues: []metav1.ConditionStatus{metav1.ConditionTrue}}}
	}
	m.check(m.hub.Hub.Create(m.Context(), &policyv1alpha1.ClusterTaintPolicy{ObjectMeta: metav1.ObjectMeta{Name: "network"}, Spec: policyv1alpha1.ClusterTaintPolicySpec{
		AddOnConditions: when(policyv1alpha1.MatchConditionOpNotIn), RemoveOnConditions: when(policyv1alpha1.MatchConditionOpIn),
		Taints: []policyv1alpha1.Taint{{Key: "network", Effect: corev1.TaintEffectNoSchedule}, {Key: "routes", Value: "none", Effect: corev1.TaintEffectNoSchedule}},
	}}))
	m.check(m.hub.Hub.Create(m.Context(), &remedyv1alpha1.Remedy{ObjectMeta: metav1.ObjectMeta{Name: "storage"}, Spec: remedyv1alpha1.RemedySpec{
		Actions: []remedyv1alpha1.RemedyAction{"TrafficControl"},
		DecisionMatches: []remedyv1alpha1.DecisionMatch{{ClusterConditionMatch: &remedyv1alpha1.ClusterConditionRequirement{
			ConditionType: "StorageReady", Operator: remedyv1alpha1.ClusterConditionNotEqual, ConditionStatus: string(metav1.ConditionTrue),
		}}},
	}}))
	m.eventually("its status counts what runs there", func() error {
		if _, pods := m.cluster(from); pods == "0" {
			return errors.New("it counts no pods")
		}
		return nil
	})
	m.hub.QuietRevision(t)
	_, before := m.cluster(from)

	m.report(from, metav1.ConditionFalse, "NetworkReady", "StorageReady")
	is := func(want string) func() error {
		return func() error {
			if got, _ := m.cluster(from); got != want {
				return fmt.Errorf("%s, want %s", got, want)
			}
			return nil
		}
	}
	const taints, rest = "network:NoSchedule routes=none:NoSchedule]", " [NetworkReady False Ready True StorageReady False] [TrafficControl]"
	m.eventually("both act on it", is("["+taints+rest))
	m.eventually("it is told on the Cluster", func() error {
		var events corev1.EventList
		m.check(m.hub.Hub.List(m.Context(), &events, client.InNamespace(metav1.NamespaceDefault)))
		if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.Reason == clusterv1alpha1.EventReasonTaintClusterSucceed && e.InvolvedObject.Kind == "Cluster" && e.InvolvedObject.Name == from
		}) {
			return errors.New("it is not")
		}
		return nil
	})
	m.tainted(from, "fail-test", true)
	m.eventually("what ran there is moved", func() error { return errors.Join(m.names(ns, to), m.runs(to, ns), m.gone(from, ns)) })
	m.eventually("the status is written by whoever reads the cluster", func() error {
		if _, after := m.cluster(from); after == before {
			return fmt.Errorf("%s pods as before", after)
		}
		return nil
	})
	m.hub.QuietRevision(t)
	m.check(is("[fail-test:NoExecute " + taints + rest)())

	m.report(from, metav1.ConditionTrue, "NetworkReady", "StorageReady")
	m.eventually("it is well again", is("[fail-test:NoExecute] [NetworkReady True Ready True StorageReady True] []"))
}

// TestClientsBreakAnApplication is the row "application, Gracefully, new one never healthy", and what is edited in a live
// policy before: the old copy stays for the toleration and the grace after the change that broke it, and goes then.
func TestClientsBreakAnApplication(t *testing.T) {
	const toleration, grace = 1, 3
	m := newMovesWith(t, registerClients)
	ns := m.hub.Namespace(t)
	m.start(ns, failing(600, policyv1alpha1.PurgeModeGracefully, ptr.To[int32](600))) // more replicas take a while
	m.eventually("it runs in the first", func() error { return m.runs(to, ns) })
	m.check(m.hub.Hub.Patch(m.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`))))
	m.eventually("all three do", func() error {
		web := &appsv1.Deployment{}
		err := m.edges[to].Get(m.Context(), client.ObjectKey{Namespace: ns, Name: "web"}, web)
		if web.Status.AvailableReplicas != 3 {
			err = errors.Join(err, fmt.Errorf("%d available", web.Status.AvailableReplicas))
		}
		return err
	})
	m.edit(ns, failing(toleration, policyv1alpha1.PurgeModeGracefully, ptr.To[int32](grace)))
	m.eventually("the grace reaches the binding", func() error {
		b, err := m.binding(ns)
		if err != nil || b.Spec.Failover == nil || b.Spec.Failover.Application == nil || ptr.Deref(b.Spec.Failover.Application.GracePeriodSeconds, 0) != grace {
			return errors.Join(err, fmt.Errorf("spec.failover %+v", b.Spec.Failover))
		}
		return nil
	})
	broken := time.Now()
	m.check(m.hub.Hub.Create(m.Context(), illIn(ns, to, from)))
	left := false
	m.eventually("the old copy goes", func() error {
		there := m.has(to, ns)
		if after := time.Since(broken); !there && after < (toleration+grace)*time.Second {
			t.Fatalf("it is gone after %s", after)
		}
		left = left || there && m.names(ns, from) == nil
		if there {
			return errStays
		}
		return nil
	})
	if !left {
		t.Error("both copies were never there together")
	}
}

// used reports whether the quota "team" says that this is used, and nothing else.
func (m *moves) used(ns string, want corev1.ResourceList) error {
	q := &policyv1alpha1.FederatedResourceQuota{}
	if err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Namespace: ns, Name: "team"}, q); err != nil {
		return err
	}
	if diff := cmp.Diff(policyv1alpha1.FederatedResourceQuotaStatus{Overall: q.Spec.Overall, OverallUsed: want}, q.Status); diff != "" {
		return fmt.Errorf("status (-want +got):\n%s", diff)
	}
	return nil
}

// overQuota waits until a quota has refused what a Deployment asks for, and all that clients look at says so; it is placed
// so all the while.
func (m *moves) overQuota(ns, name, placed string) {
	m.Helper()
	m.eventually(name+" is refused", func() error {
		b := &workv1alpha2.ResourceBinding{}
		if err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Namespace: ns, Name: workv1alpha2.BindingName("Deployment", name)}, b); err != nil {
			return err
		}
		if got := placement.Text(b.Spec.Clusters); got != placed && len(b.Spec.Clusters) > 0 {
			m.Fatalf("%s is placed in %s, want %s", name, got, placed)
		}
		c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.Scheduled)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != workv1alpha2.BindingReasonQuotaExceeded || placement.Text(b.Spec.Clusters) != placed {
			return fmt.Errorf("placed in %s, Scheduled is %+v", placement.Text(b.Spec.Clusters), c)
		}
		return m.both(ns, name, workv1alpha2.EventReasonScheduleBindingFailed, `admission webhook "resourcebinding.karmada.io" denied the request`)
	})
}

// asks has a Deployment ask for other replicas, or for another CPU of each.
func (m *moves) asks(ns, name, patch string) {
	m.Helper()
	m.check(m.hub.Hub.Patch(m.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}, client.RawPatch(types.StrategicMergePatchType, []byte(patch))))
}

// carried are the replicas and the CPU of each that clusters have of a Deployment.
func (m *moves) carried(ns, name string) string {
	m.Helper()
	var out []string
	for _, cluster := range []string{from, to} {
		d := &appsv1.Deployment{}
		err := m.edges[cluster].Get(m.Context(), client.ObjectKey{Namespace: ns, Name: name}, d)
		if m.check(client.IgnoreNotFound(err)); err == nil {
			out = append(out, fmt.Sprintf("%s %d x %s", cluster, ptr.Deref(d.Spec.Replicas, 0), d.Spec.Template.Spec.Containers[0].Resources.Requests.Cpu()))
		}
	}
	return strings.Join(out, ", ")
}

// TestClientsLimitANamespace are the rows "overallUsed", "refusal" and "growth of requests": what a quota refuses is reported, and
// changes nothing of what runs.
func TestClientsLimitANamespace(t *testing.T) {
	m := newMovesWith(t, registerClients)
	ns := m.hub.Namespace(t)
	limit := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "team"}}
	limit.Spec.Overall = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("10Gi")}
	m.check(m.hub.Hub.Create(m.Context(), limit))
	m.eventually("it says what it limits, without a share and without use", func() error { return m.used(ns, nil) })

	m.divide(ns, "web", 2)
	const both = "{" + from + ":1, " + to + ":1}"
	m.decided(ns, "web", "Success "+both)
	const carried = from + " 1 x 500m, " + to + " 1 x 500m"
	m.eventually("it stands in both clusters", func() error {
		if got := m.carried(ns, "web"); got != carried {
			return errors.New(got)
		}
		return nil
	})
	m.eventually("it is counted, and the memory that nobody asks for is not there", func() error { return m.used(ns, cores("1")) })

	m.divide(ns, "big", 4)
	m.overQuota(ns, "big", "{}")

	m.asks(ns, "web", `{"spec":{"replicas":5}}`)
	m.overQuota(ns, "web", both)
	m.asks(ns, "web", `{"spec":{"replicas":2}}`)
	m.decided(ns, "web", "Success "+both)

	before, err := m.binding(ns)
	m.check(err)
	m.asks(ns, "web", `{"spec":{"template":{"spec":{"containers":[{"name":"web","resources":{"requests":{"cpu":"1500m"}}}]}}}}`)
	m.eventually("an edit that asks for more is told on the template", func() error {
		got := m.reported(ns, "web", policyv1alpha1.EventReasonApplyPolicyFailed)
		if !strings.Contains(strings.Join(got["Deployment"], ""), "FederatedResourceQuota "+ns+"/team is exceeded") {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	m.hub.QuietRevision(t)
	after, err := m.binding(ns)
	m.check(err)
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
		t.Errorf("the binding's spec (-before +after):\n%s", diff)
	}
	if got := m.carried(ns, "web"); got != carried {
		t.Errorf("clusters have %s, want %s as before", got, carried)
	}
	if err := m.used(ns, cores("1")); err != nil {
		t.Error(err)
	}
}

// TestClientsFindNoRoom are the reasons of Scheduled=False that such programs compare, where nodes or quotas of real members
// have too little room for what is new.
func TestClientsFindNoRoom(t *testing.T) {
	m := newMovesWith(t, registerClients)
	ns := m.hub.Namespace(t)
	for _, cluster := range []string{from, to} {
		m.eventually("namespace in "+cluster, func() error {
			return m.edges[cluster].Get(m.Context(), client.ObjectKey{Name: ns}, &corev1.Namespace{})
		})
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}}}
		m.check(m.edges[cluster].Create(m.Context(), quota))
		m.eventually("its quota is in force", func() error {
			err := m.edges[cluster].Get(m.Context(), client.ObjectKeyFromObject(quota), quota)
			if err == nil && len(quota.Status.Hard) == 0 {
				err = errors.New("not yet")
			}
			return err
		})
	}
	weighted := &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
	}
	inOne := policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{to}}, ReplicaScheduling: weighted}
	spread := policyv1alpha1.Placement{
		ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated},
		SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}},
	}
	for _, tc := range []struct {
		name, needs  string
		placement    policyv1alpha1.Placement
		reason, says string
	}{
		{"one-nodes", `{"cpu":"1k"}`, inOne, workv1alpha2.BindingReasonUnschedulable, "are not enough to schedule"},
		{"spread-nodes", `{"cpu":"1k"}`, spread, workv1alpha2.BindingReasonSchedulerError, "no enough resource"},
		{"one-quota", `{"memory":"2Mi"}`, inOne, workv1alpha2.BindingReasonUnschedulable, "are not enough to schedule"},
		{"spread-quota", `{"memory":"2Mi"}`, spread, workv1alpha2.BindingReasonSchedulerError, "no enough resource"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := m.in(t)
			labels := map[string]string{"app": tc.name}
			web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: tc.name}, Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}},
			}}
			m.check(json.Unmarshal([]byte(tc.needs), &web.Spec.Template.Spec.Containers[0].Resources.Requests))
			m.check(m.hub.Hub.Create(m.Context(), &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: tc.name}, Spec: policyv1alpha1.PropagationSpec{
				ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: tc.name}}, Placement: tc.placement,
			}}))
			m.check(m.hub.Hub.Create(m.Context(), web))
			m.eventually("it is not placed, and that is said", func() error {
				b := &workv1alpha2.ResourceBinding{}
				if err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Namespace: ns, Name: workv1alpha2.BindingName("Deployment", tc.name)}, b); err != nil {
					return err
				}
				c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.Scheduled)
				if c == nil || c.Status != metav1.ConditionFalse || c.Reason != tc.reason || !strings.Contains(c.Message, tc.says) || len(b.Spec.Clusters) > 0 {
					return fmt.Errorf("placed in %s, Scheduled is %+v", placement.Text(b.Spec.Clusters), c)
				}
				return m.both(ns, tc.name, workv1alpha2.EventReasonScheduleBindingFailed, c.Message)
			})
		})
	}
}
