package member

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/netip"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// providerWorkers is how many objects the provider writes at the same time.
const providerWorkers = 4

// provider is what a cloud would be to a cluster: it gives load balancers their addresses and claims their volumes.
type provider struct {
	member  kubernetes.Interface
	objects informers.SharedInformerFactory
	queue   workqueue.TypedRateLimitingInterface[job]
}

// A job is one object to look at.
type job struct {
	kind kind
	name cache.ObjectName
}

type kind string

const (
	services     kind = "services"
	ingresses    kind = "ingresses"
	volumeClaims kind = "persistentvolumeclaims"
	volumes      kind = "persistentvolumes"
)

func newProvider(member kubernetes.Interface) *provider {
	return &provider{
		member:  member,
		objects: informers.NewSharedInformerFactoryWithOptions(member, 0, informers.WithTransform(withoutManagedFields)),
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[job]()),
	}
}

// withoutManagedFields keeps informers small.
func withoutManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

// run works until the context ends.
func (p *provider) run(ctx context.Context) error {
	defer p.queue.ShutDown()
	core, networking := p.objects.Core().V1(), p.objects.Networking().V1()
	for of, informer := range map[kind]cache.SharedIndexInformer{
		services:     core.Services().Informer(),
		ingresses:    networking.Ingresses().Informer(),
		volumeClaims: core.PersistentVolumeClaims().Informer(),
		volumes:      core.PersistentVolumes().Informer(),
	} {
		if _, err := informer.AddEventHandler(p.enqueue(of)); err != nil {
			return fmt.Errorf("provider: watch %s: %w", of, err)
		}
	}
	p.objects.Start(ctx.Done())
	p.objects.WaitForCacheSync(ctx.Done())
	var group wait.Group
	for range providerWorkers {
		group.StartWithContext(ctx, func(ctx context.Context) {
			for p.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	p.queue.ShutDown()
	group.Wait()
	return nil
}

func (p *provider) enqueue(of kind) cache.ResourceEventHandler {
	add := func(obj any) {
		if name, err := cache.ObjectToName(obj); err == nil {
			p.queue.Add(job{of, name})
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, after any) { add(after) }}
}

func (p *provider) next(ctx context.Context) bool {
	next, stop := p.queue.Get()
	if stop {
		return false
	}
	defer p.queue.Done(next)
	err := p.provision(ctx, next)
	if err == nil || apierrors.IsNotFound(err) {
		p.queue.Forget(next)
		return true
	}
	if ctx.Err() == nil {
		logr.FromContextOrDiscard(ctx).Error(err, "provide", "kind", next.kind, "name", next.name.String())
	}
	p.queue.AddRateLimited(next)
	return true
}

func (p *provider) provision(ctx context.Context, next job) error {
	switch next.kind {
	case services:
		return p.service(ctx, next.name)
	case ingresses:
		return p.ingress(ctx, next.name)
	case volumeClaims:
		return p.provisionVolume(ctx, next.name)
	case volumes:
		return p.volume(ctx, next.name)
	}
	return nil
}

// addressFrom picks an address of a range of documentation addresses (RFC 5737) by name.
func addressFrom(base netip.Addr, name string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name)) // a hash takes all bytes
	address := base.As4()
	address[3] = byte(1 + hash.Sum32()%254)
	return netip.AddrFrom4(address).String()
}

// statusPatch is a merge patch that sets the addresses in a status.
func statusPatch(addresses ...string) ([]byte, error) {
	type ingress struct {
		IP string `json:"ip"`
	}
	list := []ingress{}
	for _, address := range addresses {
		list = append(list, ingress{address})
	}
	return json.Marshal(map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": list}}})
}
