package cluster

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/cluster/capacity"
	"github.com/flotilla-io/flotilla/reconciler/cluster/feed"
)

// What shows that a member may serve other kinds than before.
var kindSources = []schema.GroupVersionResource{
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
}

// observed is what is known of a member's resources.
type observed struct {
	sums    capacity.Summary
	tracker capacity.Tracker
}

// quotasWait is how long a member may take to list its quotas before what its nodes have
// free counts alone: not everybody may read quotas.
const quotasWait = 5 * time.Second

// followMember watches, until ctx ends, a member's nodes and pods for their
// sums and what single nodes have free, its quotas, and its CustomResourceDefinitions
// and APIServices for a hint that its kinds changed. A watch that breaks is taken up
// again by itself.
func followMember(ctx context.Context, member *members.Member, seen *observed, n *change) {
	var running sync.WaitGroup
	defer running.Wait()
	run := func(informer cache.SharedIndexInformer, err error) cache.SharedIndexInformer {
		if err != nil {
			log.FromContext(ctx).Error(err, "follow a member", "cluster", member.Name())
			return nil
		}
		running.Go(func() { informer.RunWithContext(ctx) })
		return informer
	}
	core := member.Clients().CoreV1()
	nodes := run(feed.New(core.RESTClient(), &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.Nodes().List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return core.Nodes().Watch(ctx, o)
		},
	}, &corev1.Node{}, capacity.TrimNode, nil))
	pods := run(feed.New(core.RESTClient(), &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.Pods(metav1.NamespaceAll).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return core.Pods(metav1.NamespaceAll).Watch(ctx, o)
		},
	}, &corev1.Pod{}, capacity.TrimPod, nil))
	followKinds(ctx, member, run, n)
	if nodes == nil || pods == nil {
		return
	}
	synced := []cache.InformerSynced{feed.Feed(ctx, nodes, seen.tracker.Nodes()), feed.Feed(ctx, pods, seen.tracker.Pods())}
	if !cache.WaitForCacheSync(ctx.Done(), nodes.HasSynced, pods.HasSynced) {
		return
	}
	seen.sums.Follow(
		capacity.Source{List: nodes.GetStore().List, Version: nodes.LastSyncResourceVersion},
		capacity.Source{List: pods.GetStore().List, Version: pods.LastSyncResourceVersion})
	close(n.first)
	// Only now, and not at once: what is free counts without quotas for a while, rather than nothing for as long.
	followQuotas(ctx, member, run, &seen.tracker)
	if cache.WaitForCacheSync(ctx.Done(), synced...) {
		seen.tracker.Known()
	}
}

// followQuotas watches a member's ResourceQuotas, and returns when they are known, or
// are not for a while.
func followQuotas(ctx context.Context, member *members.Member, run func(cache.SharedIndexInformer, error) cache.SharedIndexInformer, tracker *capacity.Tracker) {
	core := member.Clients().CoreV1()
	quotas := run(feed.New(core.RESTClient(), &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.ResourceQuotas(metav1.NamespaceAll).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return core.ResourceQuotas(metav1.NamespaceAll).Watch(ctx, o)
		},
	}, &corev1.ResourceQuota{}, capacity.TrimQuota, nil))
	if quotas == nil {
		return
	}
	synced := feed.Feed(ctx, quotas, tracker.Quotas())
	ctx, cancel := context.WithTimeout(ctx, quotasWait)
	defer cancel()
	cache.WaitForCacheSync(ctx.Done(), synced)
}

func followKinds(ctx context.Context, member *members.Member, run func(cache.SharedIndexInformer, error) cache.SharedIndexInformer, n *change) {
	client, err := metadata.NewForConfigAndClient(member.Config(), member.HTTP())
	if err != nil {
		log.FromContext(ctx).Error(err, "follow a member's kinds", "cluster", member.Name())
		return
	}
	for _, source := range kindSources {
		resource := client.Resource(source)
		run(feed.New(client, &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return resource.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return resource.Watch(ctx, o)
			},
		}, &metav1.PartialObjectMetadata{}, feed.TrimMetadata, func() {
			select {
			case n.kinds <- struct{}{}:
			default:
			}
		}))
	}
}
