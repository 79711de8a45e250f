package agents

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/e2e/fleet"
)

const (
	// lapse is how old the Lease of an agent is when it has lost it for certain, and the
	// others have not got it yet.
	lapse = 33 * time.Second
	// aftermath is for how long an agent that has woken is watched: longer than it takes
	// until something is held against a cluster.
	aftermath = 45 * time.Second
	// awake is how soon it is back at work.
	awake = 10 * time.Second
)

// renewed is when the agent of a site has last renewed its Lease in the member.
func (s *site) renewed(ctx context.Context) (time.Time, error) {
	var lease coordinationv1.Lease
	err := s.client.Get(ctx, types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: clusterv1alpha1.AgentLease}, &lease)
	if err != nil || lease.Spec.RenewTime == nil {
		return time.Time{}, fmt.Errorf("no Lease yet: %w", err)
	}
	return lease.Spec.RenewTime.Time, nil
}

// blamed is what is held against the member of a site at the moment.
func (w *world) blamed(ctx context.Context, s *site) []string {
	var found []string
	var cluster clusterv1alpha1.Cluster
	if err := w.hub.Get(ctx, types.NamespacedName{Name: s.name}, &cluster); err == nil && meta.IsStatusConditionFalse(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
		found = append(found, "the cluster: "+meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady).Message)
	}
	var works workv1alpha1.WorkList
	if err := w.hub.List(ctx, &works, client.InNamespace(workv1alpha2.ExecutionNamespace(s.name))); err != nil {
		return found
	}
	for i := range works.Items {
		if c := meta.FindStatusCondition(works.Items[i].Status.Conditions, workv1alpha1.WorkApplied); c != nil && c.Status == metav1.ConditionFalse {
			found = append(found, works.Items[i].Name+": "+c.Message)
		}
	}
	return found
}

// TestFrozenAgent stops an agent for longer than its Lease lasts, as a machine that hangs
// would: once awake it goes on at once, and the member, which was never touched, is not blamed.
func TestFrozenAgent(t *testing.T) {
	t.Parallel() // it waits for most of its time
	namespace := fleet.NameOf(t)
	s := the.site(t, fleet.Again(t, "frozen"))
	eventually(t, time.Minute, "the cluster is ready", the.judged(s.name, metav1.ConditionTrue))
	the.Apply(t, fleet.App(namespace, 2, s.name))
	runs := func(replicas int32) func(context.Context) error {
		return func(ctx context.Context) error {
			return fleet.Deployed(namespace, "web", "nginx:1.29", replicas)(ctx, s.name, s.client)
		}
	}
	eventually(t, time.Minute, "the application runs", runs(2))

	if err := s.agent.Pause(); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the agent's Lease has lapsed", func(ctx context.Context) error {
		at, err := s.renewed(ctx)
		if err == nil && time.Since(at) < lapse {
			err = fmt.Errorf("it was renewed at %s", at)
		}
		return err
	})
	the.Kubectl(t, fleet.App(namespace, 3, s.name), "apply", "-f", "-")
	woke := time.Now()
	if err := s.agent.Resume(); err != nil {
		t.Fatal(err)
	}

	var back time.Duration
	var blamed []string
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 2*aftermath, true, func(ctx context.Context) (bool, error) {
		for _, what := range the.blamed(ctx, s) {
			if !slices.ContainsFunc(blamed, func(was string) bool { return strings.HasSuffix(was, what) }) {
				blamed = append(blamed, fmt.Sprintf("%s after it woke, %s", time.Since(woke).Round(time.Second), what))
			}
		}
		if back == 0 && runs(3)(ctx) == nil {
			back = time.Since(woke)
		}
		at, err := s.renewed(ctx)
		return err == nil && at.After(woke.Add(aftermath)), nil
	})
	t.Logf("back at work %s after it woke", back.Round(time.Millisecond))
	if err != nil || back == 0 || back > slack*awake {
		t.Errorf("the change that it slept through arrived after %s (0: never), want %s at most; error: %v", back, slack*awake, err)
	}
	if len(blamed) > 0 {
		t.Errorf("the member is blamed: %q", blamed)
	}
	if err := the.judged(s.name, metav1.ConditionTrue)(t.Context()); err != nil {
		t.Error(err)
	}
}
