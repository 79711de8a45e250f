package draining

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/policies/estimate/profile"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/reconciler/cluster/capacity"
)

const (
	// readers is how many clusters are read side by side, and readTimeout how long each may take.
	readers     = 8
	readTimeout = 30 * time.Second
)

// Members connects to clusters through the control plane.
type Members func(cluster string) (kubernetes.Interface, error)

// see reads the nodes of the named clusters as the control plane does: directly for clusters in push mode, and from the
// reports of the agents for others. The notes name the clusters for which that failed.
func see(ctx context.Context, hub client.Reader, members Members, clusters []*clusterv1alpha1.Cluster, names []string) (map[string]drain.Seen, []string) {
	var mu sync.Mutex
	out, notes := map[string]drain.Seen{}, []string{}
	var group errgroup.Group
	group.SetLimit(readers)
	for _, c := range clusters {
		if !slices.Contains(names, c.Name) || !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
			continue
		}
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, readTimeout)
			defer cancel()
			seen, err := reportedBy(ctx, hub, c.Name)
			if c.Spec.SyncMode != clusterv1alpha1.Pull {
				seen, err = itself(ctx, members, c.Name)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				notes = append(notes, fmt.Sprintf("what fits in cluster %s is counted by what it reports, and not by its nodes as the drain counts: %s", c.Name, unseen(err)))
				return nil
			}
			out[c.Name] = seen
			return nil
		})
	}
	_ = group.Wait() // what fails is a note
	slices.Sort(notes)
	return out, notes
}

// unseen is why the nodes of a cluster could not be read, in words: one that hangs is no address.
func unseen(err error) string {
	if errors.Is(err, context.DeadlineExceeded) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err) {
		return "it does not answer"
	}
	return excerpt.Line(err.Error())
}

// reportedBy returns what the agent of a cluster reports about its nodes.
func reportedBy(ctx context.Context, hub client.Reader, name string) (drain.Seen, error) {
	var says corev1.ConfigMap
	if err := hub.Get(ctx, client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(name), Name: clusterv1alpha1.NodeProfileName}, &says); err != nil {
		return drain.Seen{}, fmt.Errorf("read what its agent tells of its nodes: %w", err)
	}
	p, err := profile.Decode([]byte(says.Data[clusterv1alpha1.NodeProfileKey]))
	if err != nil {
		return drain.Seen{}, fmt.Errorf("read what its agent tells of its nodes: %w", err)
	}
	return drain.Seen{Index: p.Index(), Reported: p}, nil
}

// itself reads the nodes from the cluster.
func itself(ctx context.Context, members Members, name string) (drain.Seen, error) {
	member, err := members(name)
	if err != nil {
		return drain.Seen{}, err
	}
	tracker, core := &capacity.Tracker{}, member.CoreV1()
	for _, kind := range []struct {
		list    func(context.Context, metav1.ListOptions) (runtime.Object, error)
		trim    cache.TransformFunc
		handler cache.ResourceEventHandler
	}{
		{func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.Nodes().List(ctx, o)
		}, capacity.TrimNode, tracker.Nodes()},
		{func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.Pods("").List(ctx, o)
		}, capacity.TrimPod, tracker.Pods()},
		{func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.ResourceQuotas("").List(ctx, o)
		}, capacity.TrimQuota, tracker.Quotas()},
	} {
		err := pager.New(kind.list).EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
			is, err := kind.trim(obj)
			kind.handler.OnAdd(is, true)
			return err
		})
		if err != nil {
			return drain.Seen{}, err
		}
	}
	tracker.Known()
	var out drain.Seen
	return out, tracker.Read(func(x *nodes.Index) { out.Index = x })
}
