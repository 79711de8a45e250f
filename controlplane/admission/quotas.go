package admission

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// Quotas caches the FederatedResourceQuotas while Run runs.
type Quotas struct {
	known  cache.Indexer
	synced chan struct{}
}

// NewQuotas returns an empty cache.
func NewQuotas() *Quotas {
	return &Quotas{
		known:  cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		synced: make(chan struct{}),
	}
}

// Run watches the quotas of the hub until ctx ends. It may be called once.
func (q *Quotas) Run(ctx context.Context, hub *rest.Config) error {
	client, err := dynamic.NewForConfig(hub)
	if err != nil {
		return fmt.Errorf("client for quotas: %w", err)
	}
	resource := policyv1alpha1.GroupVersion.WithResource("federatedresourcequotas")
	informer := dynamicinformer.NewFilteredDynamicInformer(client, resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	if err := informer.SetTransform(quotaOf); err != nil {
		return fmt.Errorf("follow quotas: %w", err)
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { q.set(obj) },
		UpdateFunc: func(_, obj any) { q.set(obj) },
		DeleteFunc: func(obj any) { q.forget(obj) },
	})
	if err != nil {
		return fmt.Errorf("follow quotas: %w", err)
	}
	go func() {
		const often = 5 * time.Millisecond
		if wait.PollUntilContextCancel(ctx, often, true, func(context.Context) (bool, error) { return handler.HasSynced(), nil }) == nil {
			close(q.synced)
		}
	}()
	informer.RunWithContext(ctx)
	return nil
}

func (q *Quotas) set(obj any) {
	if limit, ok := obj.(*policyv1alpha1.FederatedResourceQuota); ok {
		_ = q.known.Update(limit) // fails only for what has no metadata
	}
}

func (q *Quotas) forget(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if limit, ok := obj.(*policyv1alpha1.FederatedResourceQuota); ok {
		_ = q.known.Delete(limit) // as above
	}
}

// quotaOf converts a watched object into its type, without the fields that limit nothing.
// A quota that cannot be read, which was stored before such quotas were refused, limits
// nothing: an error here would keep all other quotas out of the cache.
func quotaOf(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	limit := &policyv1alpha1.FederatedResourceQuota{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, limit); err != nil {
		out := &policyv1alpha1.FederatedResourceQuota{}
		out.Namespace, out.Name, out.UID, out.ResourceVersion = u.GetNamespace(), u.GetName(), u.GetUID(), u.GetResourceVersion()
		return out, nil
	}
	limit.ManagedFields, limit.Status = nil, policyv1alpha1.FederatedResourceQuotaStatus{}
	return limit, nil
}

// of returns the quotas of a namespace. It waits up to timeout until they are known.
func (q *Quotas) of(ctx context.Context, namespace string) ([]*policyv1alpha1.FederatedResourceQuota, error) {
	select {
	case <-q.synced:
	default:
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		select {
		case <-q.synced:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	found, err := q.known.ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil, err
	}
	var out []*policyv1alpha1.FederatedResourceQuota
	for _, obj := range found {
		if limit, ok := obj.(*policyv1alpha1.FederatedResourceQuota); ok {
			out = append(out, limit)
		}
	}
	return out, nil
}
