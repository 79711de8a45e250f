package estimator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/reconciler/cluster/capacity"
)

// Member knows what the single nodes of a cluster have free, from watches. It knows nothing
// before their first lists are complete. It is safe for concurrent use. Use NewMember.
type Member struct {
	client  kubernetes.Interface
	tracker capacity.Tracker
	plugins []nodes.Plugin
	quotas  bool
	clock   clock.PassiveClock
	known   chan struct{}
}

// NewMember returns a member that is estimated by its nodes and, with quotas, also by its
// ResourceQuotas.
func NewMember(client kubernetes.Interface, quotas bool, clock clock.PassiveClock) *Member {
	m := &Member{client: client, plugins: []nodes.Plugin{nodes.Resources{}}, quotas: quotas, clock: clock, known: make(chan struct{})}
	if quotas {
		m.plugins = append(m.plugins, nodes.Quotas{})
	}
	return m
}

// Start watches until ctx ends. It is called once.
func (m *Member) Start(ctx context.Context) error {
	type followed struct {
		resource string
		kind     runtime.Object
		trim     cache.TransformFunc
		handler  cache.ResourceEventHandler
	}
	follow := []followed{
		{"nodes", &corev1.Node{}, capacity.TrimNode, m.tracker.Nodes()},
		{"pods", &corev1.Pod{}, capacity.TrimPod, m.tracker.Pods()},
	}
	if m.quotas {
		follow = append(follow, followed{"resourcequotas", &corev1.ResourceQuota{}, capacity.TrimQuota, m.tracker.Quotas()})
	}
	var running sync.WaitGroup
	defer running.Wait()
	var synced []cache.InformerSynced
	for _, f := range follow {
		informer := cache.NewSharedIndexInformer(
			cache.NewListWatchFromClient(m.client.CoreV1().RESTClient(), f.resource, metav1.NamespaceAll, fields.Everything()), f.kind, 0, cache.Indexers{})
		registration, err := informer.AddEventHandler(f.handler)
		if err = errors.Join(err, informer.SetTransform(f.trim)); err != nil {
			return fmt.Errorf("watch %s: %w", f.resource, err)
		}
		synced = append(synced, registration.HasSynced)
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	if cache.WaitForCacheSync(ctx.Done(), synced...) {
		m.tracker.Known()
		close(m.known)
	}
	return nil
}

// Known returns a channel that is closed once all watches have completed their first list.
func (m *Member) Known() <-chan struct{} { return m.known }

// MaxReplicas implements Answers.
func (m *Member) MaxReplicas(_ context.Context, _ string, need *workv1alpha2.ReplicaRequirements, assumed []estimate.Assumed) (int32, error) {
	ask, err := nodes.AskForReplicas(need, assumed)
	if err != nil {
		return 0, err
	}
	return m.tracker.Most(ask, m.plugins...)
}

// MaxSets implements Answers.
func (m *Member) MaxSets(_ context.Context, _, namespace string, components []workv1alpha2.Component, assumed []estimate.Assumed) (int32, error) {
	ask, err := nodes.AskForSets(namespace, components, assumed)
	if err != nil {
		return 0, err
	}
	return m.tracker.Most(ask, m.plugins...)
}

// Unschedulable implements Answers.
func (m *Member) Unschedulable(_ context.Context, _ string, of workv1alpha2.ObjectReference, threshold time.Duration) (int32, error) {
	return m.tracker.Unschedulable(of, threshold, m.clock.Now())
}
