package cluster

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/reconciler/cluster/capacity"
)

// TestOnlyMembersThatAnswerAreWatched has a member come, become known, and go away.
func TestOnlyMembersThatAnswerAreWatched(t *testing.T) {
	cluster := pushed("one", "https://127.0.0.1:1")
	r := loopOver(t, cluster, func(*Reconciler, *corev1.Secret) {})
	estimator := r.Estimator(nodes.Resources{})
	need := &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	ask := func() (int32, error) { return estimator.MaxReplicas(t.Context(), "eu-1", need, nil) }
	if _, err := ask(); !errors.Is(err, ErrNotWatched) {
		t.Errorf("of a member that nobody watches: %v", err)
	}
	r.connectTo(t, cluster)
	watch := r.watches.byCluster["eu-1"]
	if _, err := ask(); !errors.Is(err, ErrNotWatched) {
		t.Errorf("of a member that has not answered: %v", err)
	}
	watch.seen = &observation{outcome: outcome{ready: true}}
	if _, err := ask(); !errors.Is(err, capacity.ErrUnknown) {
		t.Errorf("of a member whose nodes are not known: %v", err)
	}
	node, err := capacity.TrimNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3"), corev1.ResourcePods: resource.MustParse("9")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	watch.observed.tracker.Nodes().OnAdd(node, true)
	watch.observed.tracker.Known()
	if got, err := ask(); err != nil || got != 3 {
		t.Errorf("%d fit (%v), want 3", got, err)
	}
	set := []workv1alpha2.Component{{Replicas: 2, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: need.ResourceRequest}}}
	if got, err := estimator.MaxSets(t.Context(), "eu-1", "shop", set, nil); err != nil || got != 1 {
		t.Errorf("%d sets fit (%v), want 1", got, err)
	}
	if got, err := estimator.Unschedulable(t.Context(), "eu-1", workv1alpha2.ObjectReference{Kind: "Deployment"}, time.Minute); err != nil || got != 0 {
		t.Errorf("%d wait (%v), want none", got, err)
	}
	count := 0
	read := func(x *nodes.Index) {
		for range x.Nodes() {
			count++
		}
	}
	if err := estimator.ReadNodes("eu-1", read); err != nil || count != 1 {
		t.Errorf("%d nodes are seen (%v), want 1", count, err)
	}
	if err := estimator.ReadNodes("eu-2", read); !errors.Is(err, ErrNotWatched) {
		t.Errorf("who looks at a member that nobody watches: %v", err)
	}
	watch.seen = &observation{}
	if _, err := ask(); !errors.Is(err, ErrNotWatched) {
		t.Errorf("of a member that is away: %v", err)
	}
}
