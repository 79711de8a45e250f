package setback

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Register has the keeper begin with the loops of mgr, and follow what it needs to
// know by the watches that they have. Hears says that what agents say is weighed here,
// and that the run is written down for them: loops that are spread over programs have one
// that does so, or agents would take the run of another for a later one.
func (k *Keeper) Register(mgr ctrl.Manager, hears bool) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := k.Begin(ctx); err != nil { // before the first member is looked at, at the latest
			log.FromContext(ctx).Info("The history of the hub is not known yet", "reason", err.Error())
		}
		if err := k.follow(ctx, mgr); err != nil {
			return err
		}
		if !hears {
			<-ctx.Done()
			return nil
		}
		if err := k.agents.follow(ctx, mgr.GetCache()); err != nil {
			return err
		}
		k.agents.run(ctx, k)
		return nil
	}))
}

func (k *Keeper) follow(ctx context.Context, mgr ctrl.Manager) error {
	namespaces, err := mgr.GetCache().GetInformer(ctx, &corev1.Namespace{})
	if err != nil {
		return fmt.Errorf("watch the namespace kube-system: %w", err)
	}
	learn := func(obj any) {
		if namespace, ok := obj.(*corev1.Namespace); ok {
			k.Learned(namespace)
		}
	}
	if _, err := namespaces.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: learn, UpdateFunc: func(_, obj any) { learn(obj) }}); err != nil {
		return fmt.Errorf("watch the namespace kube-system: %w", err)
	}
	return followWorks(ctx, mgr.GetCache(), k.Saw)
}

// followWorks reports each revision that concerns a member.
func followWorks(ctx context.Context, from cache.Cache, saw func(cluster, resourceVersion string), opts ...cache.InformerGetOption) error {
	works, err := from.GetInformer(ctx, &workv1alpha1.Work{}, opts...)
	if err != nil {
		return fmt.Errorf("watch works: %w", err)
	}
	see := func(obj any) {
		work, ok := obj.(*workv1alpha1.Work)
		if !ok {
			return
		}
		if cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(work.Namespace); ok {
			saw(cluster, work.ResourceVersion)
		}
	}
	if _, err := works.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, obj any) { see(obj) }, DeleteFunc: see}); err != nil {
		return fmt.Errorf("watch works: %w", err)
	}
	return nil
}
