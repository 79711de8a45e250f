package agents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/e2e/fleet"
)

const copies = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement:
    clusterAffinity: {clusterNames: [%s]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1.29"}]}
`

// answered is what the control plane logs when it has answered an agent.
const answered = "An agent that was away may remove what it was told to"

// TestAnAgentThatWasAwayKeepsTheLastCopy: an agent that is there asks nothing. A copy that was to go while its agent was away stays when that is back and the other copy has
// died meanwhile, also after one more restart, and goes once that one is there again.
func TestAnAgentThatWasAwayKeepsTheLastCopy(t *testing.T) {
	t.Parallel() // it waits for most of its time
	w := of(fleet.Own(t, fleet.Options{Dir: fleet.Folder(t), Members: []string{"solo"}, HubArgs: []string{
		"--cluster-monitor-grace-period", silence.String(), "--cluster-status-update-frequency", "1s", "--cluster-failure-threshold", "2s", "--cluster-success-threshold", "2s",
	}}))
	s := w.site(t, "away")
	w.Eventually(t, time.Minute, "the cluster is ready", w.judged(s.name, metav1.ConditionTrue))
	there := fleet.Deployed("shop", "web", "nginx:1.29", 1)
	both := func() {
		t.Helper()
		w.Apply(t, fmt.Sprintf(copies, "away, solo"))
		w.Eventually(t, time.Minute, "it runs in both", func(ctx context.Context) error {
			return errors.Join(there(ctx, s.name, s.client), there(ctx, "solo", w.members["solo"]))
		})
	}
	gone := func(ctx context.Context) error {
		if err := s.client.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "web"}, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return there(ctx, "solo", w.members["solo"])
	}
	both()
	w.Eventually(t, time.Minute, "the agent has been there for longer than clocks may differ", func(ctx context.Context) error {
		var c clusterv1alpha1.Cluster
		if err := w.hub.Get(ctx, types.NamespacedName{Name: s.name}, &c); err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady); time.Since(ready.LastTransitionTime.Time) < 5*time.Second {
			return fmt.Errorf("Ready is %+v", ready)
		}
		return nil
	})
	w.Apply(t, fmt.Sprintf(copies, "solo"))
	w.Eventually(t, time.Minute, "it goes", gone)
	if log, err := os.ReadFile(w.Hub.Log); err != nil || strings.Contains(string(log), answered) {
		t.Errorf("an agent that is there asks; error: %v", err)
	}

	both()
	if err := s.agent.Kill(); err != nil {
		t.Fatal(err)
	}
	w.Apply(t, fmt.Sprintf(copies, "solo"))
	of := workv1alpha2.WorkName("Deployment", "web", "shop")
	w.Eventually(t, time.Minute, "it is placed in the other alone", func(ctx context.Context) error {
		var b workv1alpha2.ResourceBinding
		err := w.hub.Get(ctx, types.NamespacedName{Namespace: "shop", Name: workv1alpha2.BindingName("Deployment", "web")}, &b)
		if err != nil || len(b.Spec.Clusters) != 1 {
			return errors.Join(err, fmt.Errorf("placed in %v", b.Spec.Clusters))
		}
		return nil
	})
	w.drop(t, s.name, of, false) // what the control plane does at the latest once the other one is known to be healthy
	if err := w.Members["solo"].Pause(); err != nil {
		t.Fatal(err)
	}
	w.Eventually(t, time.Minute, "the other cluster counts as lost", w.judged("solo", metav1.ConditionFalse))

	asked := "" // the question that was asked last
	kept := func(ctx context.Context) error {
		work := &workv1alpha1.Work{}
		if err := w.hub.Get(ctx, types.NamespacedName{Namespace: workv1alpha2.ExecutionNamespace(s.name), Name: of}, work); err != nil {
			return err
		}
		c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkDeletionBlocked)
		if c == nil || c.Reason != "LastCopy" || c.Message == asked {
			return fmt.Errorf("the Work says %+v", work.Status.Conditions)
		}
		err := there(ctx, s.name, s.client)
		if err == nil {
			asked = c.Message
		}
		return err
	}
	if err := s.agent.Start(); err != nil {
		t.Fatal(err)
	}
	w.Eventually(t, time.Minute, "the agent keeps the copy", kept)
	w.Eventually(t, time.Minute, "the control plane tells that it stays", w.reports(s.name, of, "Deployment shop/web is healthy in none of the clusters that it is placed in (solo)"))
	if err := s.agent.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.agent.Start(); err != nil {
		t.Fatal(err)
	}
	w.Eventually(t, time.Minute, "an agent that starts once more asks once more", kept)

	if err := w.Members["solo"].Resume(); err != nil {
		t.Fatal(err)
	}
	w.Eventually(t, 2*time.Minute, "it goes once the other one is there again", gone)
	if log, err := os.ReadFile(w.Hub.Log); err != nil || !strings.Contains(string(log), answered) {
		t.Errorf("the control plane does not say that it has answered; error: %v", err)
	}
}

// reports is nil once an Event about a Work says something.
func (w *world) reports(cluster, work, says string) func(context.Context) error {
	return func(ctx context.Context) error {
		var events corev1.EventList
		if err := w.hub.List(ctx, &events, client.InNamespace(workv1alpha2.ExecutionNamespace(cluster))); err != nil {
			return err
		}
		var all []string
		for i := range events.Items {
			e := &events.Items[i]
			if e.InvolvedObject.Name == work && strings.HasPrefix(e.Message, says) {
				return nil
			}
			all = append(all, e.InvolvedObject.Name+": "+e.Message)
		}
		return fmt.Errorf("Events: %q", all)
	}
}
