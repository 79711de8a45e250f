package remedy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	remedyv1alpha1 "github.com/flotilla-io/flotilla/api/remedy/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/cluster"
	"github.com/flotilla-io/flotilla/reconciler/remedy"
)

type nobody struct{}

func (nobody) Event(runtime.Object, string, string, string) {}

// loops are this one, and the one that writes the rest of a cluster's status.
func loops(_ context.Context, mgr ctrl.Manager) error {
	registry := members.New(members.Options{})
	silence := cluster.Silence{Grace: 300 * time.Millisecond, Startup: 300 * time.Millisecond}
	for _, l := range []interface{ Register(ctrl.Manager) error }{
		cluster.New(mgr.GetClient(), mgr.GetAPIReader(), registry, nobody{}, cluster.Options{Silence: silence}),
		remedy.New(mgr.GetClient()),
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

// report writes a condition as somebody does who gives no reason.
func (w world) report(condition string, status metav1.ConditionStatus) {
	w.Helper()
	servertest.Eventually(w, "report "+condition, func(ctx context.Context) error {
		c := &clusterv1alpha1.Cluster{}
		if err := w.hub.Get(ctx, client.ObjectKey{Name: "eu-1"}, c); err != nil {
			return err
		}
		c.Status.KubernetesVersion = "v1.36.4"
		c.Status.Conditions = slices.DeleteFunc(c.Status.Conditions, func(is metav1.Condition) bool { return is.Type == condition })
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: condition, Status: status, LastTransitionTime: metav1.Now()})
		return w.hub.Status().Update(ctx, c)
	})
}

// await waits until the cluster says this: its actions, conditions, version and taints.
func (w world) await(what, want string) {
	w.Helper()
	servertest.Eventually(w, what, func(ctx context.Context) error {
		c := &clusterv1alpha1.Cluster{}
		if err := w.hub.Get(ctx, client.ObjectKey{Name: "eu-1"}, c); err != nil {
			return err
		}
		var conditions, taints []string
		for _, is := range c.Status.Conditions {
			conditions = append(conditions, is.Type+" "+string(is.Status))
		}
		for i := range c.Spec.Taints {
			taints = append(taints, c.Spec.Taints[i].ToString())
		}
		slices.Sort(conditions)
		slices.Sort(taints)
		got := fmt.Sprintf("%s %s %s %s", c.Status.RemedyActions, conditions, c.Status.KubernetesVersion, taints)
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("cluster (-want +got):\n%s", diff)
		}
		return nil
	})
}

// TestRemedies: who else writes conditions and taints of a cluster is heard, and left
// alone.
func TestRemedies(t *testing.T) {
	env := servertest.New(t)
	env.Loops(t, loops)
	w := world{t, env.Hub}
	eu1 := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}
	eu1.Spec.SyncMode = clusterv1alpha1.Pull
	eu1.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoExecute}}
	block := &remedyv1alpha1.Remedy{}
	if err := json.Unmarshal([]byte(`{"metadata":{"name":"block"},"spec":{"clusterAffinity":{"clusterNames":["eu-1"]},"actions":["TrafficControl"],
		"decisionMatches":[{"clusterConditionMatch":{"conditionType":"ServiceDomainNameResolutionReady","operator":"NotEqual","conditionStatus":"True"}}]}}`), block); err != nil {
		t.Fatal(err)
	}
	for _, obj := range []client.Object{eu1, block} {
		if err := w.hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	const taints = "[cluster.karmada.io/not-ready:NoExecute cluster.karmada.io/unreachable:NoSchedule]"
	const broken, well = "[Ready Unknown ServiceDomainNameResolutionReady False] v1.36.4 " + taints, "[Ready Unknown ServiceDomainNameResolutionReady True] v1.36.4 " + taints
	w.await("a cluster whose agent never was", "[] [Ready Unknown]  "+taints)
	w.report("ServiceDomainNameResolutionReady", metav1.ConditionFalse)
	w.await("a condition of a type that nobody knows", "[TrafficControl] "+broken)

	// The loop of clusters writes the status meanwhile.
	w.report("Ready", metav1.ConditionTrue)
	w.await("a cluster that was ready and is silent", "[TrafficControl] "+broken)
	env.QuietRevision(t)
	w.await("a cluster that nobody writes to any more", "[TrafficControl] "+broken)

	w.report("ServiceDomainNameResolutionReady", metav1.ConditionTrue)
	w.await("a condition that is well again", "[] "+well)
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(clusterv1alpha1.GroupVersion.WithKind("Cluster"))
	if err := w.hub.Get(t.Context(), client.ObjectKey{Name: "eu-1"}, raw); err != nil {
		t.Fatal(err)
	}
	if actions, there, _ := unstructured.NestedFieldNoCopy(raw.Object, "status", "remedyActions"); there {
		t.Errorf("no action is written as %v", actions)
	}

	// Another spec, and the end, of a remedy count at once.
	block.Spec.DecisionMatches = nil
	if err := w.hub.Update(t.Context(), block); err != nil {
		t.Fatal(err)
	}
	w.await("a remedy without matches", "[TrafficControl] "+well)
	if err := w.hub.Delete(t.Context(), block); err != nil {
		t.Fatal(err)
	}
	w.await("a remedy that is gone", "[] "+well)
}
