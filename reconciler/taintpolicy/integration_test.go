package taintpolicy_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/cluster"
	"github.com/flotilla-io/flotilla/reconciler/taintpolicy"
)

type nobody struct{}

func (nobody) Event(runtime.Object, string, string, string) {}

// loops are this one, and the one that taints clusters that are silent.
func loops(_ context.Context, mgr ctrl.Manager) error {
	registry := members.New(members.Options{})
	events := mgr.GetEventRecorderFor("flotilla") //nolint:staticcheck // Karmada's clients read core/v1 Events
	silence := cluster.Silence{Grace: 300 * time.Millisecond, Startup: 300 * time.Millisecond}
	for _, l := range []interface{ Register(ctrl.Manager) error }{
		cluster.New(mgr.GetClient(), mgr.GetAPIReader(), registry, nobody{}, cluster.Options{Silence: silence}),
		taintpolicy.New(mgr.GetClient(), events, taintpolicy.Options{}),
	} {
		if err := l.Register(mgr); err != nil {
			return err
		}
	}
	return mgr.Add(registry)
}

// world is a hub with one cluster in pull mode, whose agent is the test.
type world struct {
	*testing.T
	hub client.Client
}

func (w world) read() (*clusterv1alpha1.Cluster, error) {
	c := &clusterv1alpha1.Cluster{}
	return c, w.hub.Get(w.Context(), client.ObjectKey{Name: "eu-1"}, c)
}

// report writes a condition as somebody does who gives no reason.
func (w world) report(condition string, status metav1.ConditionStatus) {
	w.Helper()
	servertest.Eventually(w, "report "+condition, func(ctx context.Context) error {
		c, err := w.read()
		if err != nil {
			return err
		}
		c.Status.Conditions = slices.DeleteFunc(c.Status.Conditions, func(is metav1.Condition) bool { return is.Type == condition })
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: condition, Status: status, LastTransitionTime: metav1.Now()})
		return w.hub.Status().Update(ctx, c)
	})
}

// await waits until the cluster has exactly these taints.
func (w world) await(what string, want ...string) {
	w.Helper()
	slices.Sort(want)
	servertest.Eventually(w, what, func(context.Context) error {
		c, err := w.read()
		if err != nil {
			return err
		}
		var got []string
		for i := range c.Spec.Taints {
			got = append(got, c.Spec.Taints[i].ToString())
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("taints (-want +got):\n%s", diff)
		}
		return nil
	})
}

// reported waits for an Event about the cluster.
func (w world) reported(reason, message string) {
	w.Helper()
	servertest.Eventually(w, "event "+message, func(ctx context.Context) error {
		var list corev1.EventList
		if err := w.hub.List(ctx, &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		var got []string
		for _, e := range list.Items {
			if e.InvolvedObject.Kind == "Cluster" && e.InvolvedObject.Name == "eu-1" && e.Reason == reason && e.Message == message {
				return nil
			}
			got = append(got, e.Reason+": "+e.Message)
		}
		return fmt.Errorf("there are only %q", got)
	})
}

// TestTaintPolicies: who else writes conditions and taints of a cluster is heard, and left
// alone.
func TestTaintPolicies(t *testing.T) {
	env := servertest.New(t)
	env.Loops(t, loops)
	w := world{t, env.Hub}
	status := func(o policyv1alpha1.MatchConditionOperator) []policyv1alpha1.MatchCondition {
		return []policyv1alpha1.MatchCondition{{ConditionType: "NetworkReady", Operator: o, StatusValues: []metav1.ConditionStatus{metav1.ConditionTrue}}}
	}
	eu1 := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}
	eu1.Spec.SyncMode = clusterv1alpha1.Pull
	eu1.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoExecute}}
	offline := &policyv1alpha1.ClusterTaintPolicy{ObjectMeta: metav1.ObjectMeta{Name: "offline"}, Spec: policyv1alpha1.ClusterTaintPolicySpec{
		AddOnConditions: status(policyv1alpha1.MatchConditionOpNotIn), RemoveOnConditions: status(policyv1alpha1.MatchConditionOpIn),
		Taints: []policyv1alpha1.Taint{{Key: "offline", Value: "net", Effect: corev1.TaintEffectNoSchedule}},
	}}
	for _, obj := range []client.Object{eu1, offline} {
		if err := w.hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	const user, silent = clusterv1alpha1.TaintClusterNotReady + ":NoExecute", clusterv1alpha1.TaintClusterUnreachable + ":NoSchedule"
	w.await("a cluster whose agent never was", user, silent)

	w.report("NetworkReady", metav1.ConditionFalse)
	w.await("a condition of a type that nobody knows", user, silent, "offline=net:NoSchedule")
	w.reported(clusterv1alpha1.EventReasonTaintClusterSucceed, "added offline=net:NoSchedule")

	// The loop of clusters has its say about Ready meanwhile, and takes nothing along.
	w.report("Ready", metav1.ConditionFalse)
	w.await("a cluster that is not ready, and then silent", user, silent, "offline=net:NoSchedule")
	env.QuietRevision(t)
	w.await("a cluster that nobody writes to any more", user, silent, "offline=net:NoSchedule")
	is, err := w.read()
	if err != nil {
		t.Fatal(err)
	}
	var conditions []string
	for _, c := range is.Status.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s %s %q", c.Type, c.Status, c.Reason))
	}
	slices.Sort(conditions)
	if diff := cmp.Diff([]string{`NetworkReady False ""`, `Ready Unknown "ClusterStatusUnknown"`}, conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}

	w.report("NetworkReady", metav1.ConditionTrue)
	w.await("a condition that is well again", user, silent)
	w.reported(clusterv1alpha1.EventReasonTaintClusterSucceed, "removed offline=net:NoSchedule")

	// Another spec of the policy counts at once.
	offline.Spec.AddOnConditions, offline.Spec.RemoveOnConditions = offline.Spec.RemoveOnConditions, nil
	if err := w.hub.Update(t.Context(), offline); err != nil {
		t.Fatal(err)
	}
	w.await("a policy that says something else", user, silent, "offline=net:NoSchedule")
}
