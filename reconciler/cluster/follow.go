package cluster

import (
	"context"
	"sync"

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
)

// What tells that a member may serve other kinds than before.
var kindSources = []schema.GroupVersionResource{
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
}

// followMember watches, until ctx ends, a member's nodes and pods for their
// sums, and its CustomResourceDefinitions and APIServices for a hint that its
// kinds changed. A watch that breaks is taken up again by itself.
func followMember(ctx context.Context, member *members.Member, sums *capacity.Summary, n *change) {
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
	nodes := run(newInformer(core.RESTClient(), &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.Nodes().List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return core.Nodes().Watch(ctx, o)
		},
	}, &corev1.Node{}, capacity.TrimNode, nil))
	pods := run(newInformer(core.RESTClient(), &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.Pods(metav1.NamespaceAll).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return core.Pods(metav1.NamespaceAll).Watch(ctx, o)
		},
	}, &corev1.Pod{}, capacity.TrimPod, nil))
	followKinds(ctx, member, run, n)
	if nodes == nil || pods == nil || !cache.WaitForCacheSync(ctx.Done(), nodes.HasSynced, pods.HasSynced) {
		return
	}
	sums.Follow(
		capacity.Source{List: nodes.GetStore().List, Version: nodes.LastSyncResourceVersion},
		capacity.Source{List: pods.GetStore().List, Version: pods.LastSyncResourceVersion})
	close(n.first)
}

func followKinds(ctx context.Context, member *members.Member, run func(cache.SharedIndexInformer, error) cache.SharedIndexInformer, n *change) {
	client, err := metadata.NewForConfigAndClient(member.Config(), member.HTTP())
	if err != nil {
		log.FromContext(ctx).Error(err, "follow a member's kinds", "cluster", member.Name())
		return
	}
	for _, source := range kindSources {
		resource := client.Resource(source)
		run(newInformer(client, &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return resource.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return resource.Watch(ctx, o)
			},
		}, &metav1.PartialObjectMetadata{}, trimMetadata, func() {
			select {
			case n.kinds <- struct{}{}:
			default:
			}
		}))
	}
}

// trimMetadata keeps the name: nobody reads these objects.
func trimMetadata(obj any) (any, error) {
	partial, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: partial.Name, ResourceVersion: partial.ResourceVersion}}, nil
}

// newInformer returns an informer that keeps what trim leaves, and that calls
// changed, if given, on everything that happens after its first list.
func newInformer(client any, source *cache.ListWatch, example runtime.Object, trim cache.TransformFunc, changed func()) (cache.SharedIndexInformer, error) {
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(source, client), example, 0, cache.Indexers{})
	if err := informer.SetTransform(trim); err != nil {
		return nil, err
	}
	if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return nil, err
	}
	if changed == nil {
		return informer, nil
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, first bool) {
			if !first {
				changed()
			}
		},
		UpdateFunc: func(_, _ any) { changed() },
		DeleteFunc: func(any) { changed() },
	})
	return informer, err
}
