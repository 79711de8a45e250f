package life

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// holdings follows which Deployments members have, by watches.
type holdings struct {
	mu   sync.Mutex
	have map[string]map[string]*appsv1.Deployment // member → name → as it is there
}

// follow begins to watch a namespace of each member, until ctx ends.
func follow(ctx context.Context, members map[string]kubernetes.Interface, namespace string) (*holdings, error) {
	h := &holdings{have: map[string]map[string]*appsv1.Deployment{}}
	for name, member := range members {
		h.have[name] = map[string]*appsv1.Deployment{}
		factory := informers.NewSharedInformerFactoryWithOptions(member, 0, informers.WithNamespace(namespace))
		_, err := factory.Apps().V1().Deployments().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { h.set(name, obj) },
			UpdateFunc: func(_, obj any) { h.set(name, obj) },
			DeleteFunc: func(obj any) { h.drop(name, obj) },
		})
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", name, err)
		}
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
	}
	return h, nil
}

func (h *holdings) set(member string, obj any) {
	if d, ok := obj.(*appsv1.Deployment); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.have[member][d.Name] = d
	}
}

func (h *holdings) drop(member string, obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	if d, ok := obj.(*appsv1.Deployment); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.have[member], d.Name)
	}
}

// all waits until each member has n Deployments that are as they are to be there.
func (h *holdings) all(ctx context.Context, n int, right func(member string, d *appsv1.Deployment) bool) error {
	missing := 0
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 10*time.Minute, true, func(context.Context) (bool, error) {
		missing = h.missing(n, right)
		return missing == 0, nil
	})
	if err != nil {
		return fmt.Errorf("%d Deployments are not as they are to be: %w", missing, err)
	}
	return nil
}

// missing is of how many Deployments members have fewer, or others, than they are to have.
func (h *holdings) missing(n int, right func(member string, d *appsv1.Deployment) bool) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := 0
	for member, have := range h.have {
		fine := 0
		for _, d := range have {
			if right(member, d) {
				fine++
			}
		}
		out += max(n-fine, fine-n) + len(have) - fine
	}
	return out
}

// count returns how many Deployments each member has.
func (h *holdings) count() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]int{}
	for member, have := range h.have {
		out[member] = len(have)
	}
	return out
}
