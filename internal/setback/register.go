package setback

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Register has the keeper begin with the loops of mgr, and follow what it needs to
// know by the watches that they have.
func (k *Keeper) Register(mgr ctrl.Manager) error {
	held := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "flotilla_hub_held", Help: "Whether nothing is changed in clusters since the control plane was set back to an older backup: 1, or 0",
	}, func() float64 {
		if k.Hold() != nil {
			return 1
		}
		return 0
	})
	metrics.Registry.Unregister(held) // that of earlier loops of this process
	if err := metrics.Registry.Register(held); err != nil {
		return fmt.Errorf("register the metric of what is held: %w", err)
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := k.Begin(ctx); err != nil { // before the first member is looked at, at the latest
			log.FromContext(ctx).Info("The history of the hub is not known yet", "reason", err.Error())
		}
		if err := k.follow(ctx, mgr); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}))
}

func (k *Keeper) follow(ctx context.Context, mgr ctrl.Manager) error {
	namespaces, err := mgr.GetCache().GetInformer(ctx, &corev1.Namespace{})
	if err != nil {
		return fmt.Errorf("watch the namespace kube-system: %w", err)
	}
	works, err := mgr.GetCache().GetInformer(ctx, &workv1alpha1.Work{})
	if err != nil {
		return fmt.Errorf("watch works: %w", err)
	}
	learn := func(obj any) {
		if namespace, ok := obj.(*corev1.Namespace); ok {
			k.Learned(namespace)
		}
	}
	see := func(obj any) {
		work, ok := obj.(*workv1alpha1.Work)
		if !ok {
			return
		}
		if cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(work.Namespace); ok {
			k.Saw(cluster, work.ResourceVersion)
		}
	}
	_, err = namespaces.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: learn, UpdateFunc: func(_, obj any) { learn(obj) }})
	if err == nil {
		_, err = works.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, obj any) { see(obj) }, DeleteFunc: see})
	}
	if err != nil {
		return fmt.Errorf("follow what concerns members: %w", err)
	}
	return nil
}
