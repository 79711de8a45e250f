package housekeeping

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller"
	quotacontroller "k8s.io/kubernetes/pkg/controller/resourcequota"

	"github.com/flotilla-io/flotilla/controlplane/resourcequota"
)

const (
	// recount is how often all that quotas limit is counted anew: a creation that failed
	// after it was let through counts until then.
	recount = 5 * time.Minute
	// quotaWorkers is how many quotas are counted side by side.
	quotaWorkers = 2
	// quieter is by how much less important the log of quotas is: upstream has a line
	// for each kind at each start.
	quieter = 2
)

// newQuotas makes the controller that counts what a hub's quotas limit, from the names
// that the garbage collector keeps.
func (e *environment) newQuotas(ctx context.Context, kinds *kinds) (app.Controller, error) {
	client, err := e.clients.Client("resourcequota-controller")
	if err != nil {
		return nil, err
	}
	counts := resourcequota.Counts(generic.ListerFuncForResourceFunc(e.graph.ForResource))
	quotas, err := quotacontroller.NewController(quiet(ctx), &quotacontroller.ControllerOptions{
		QuotaClient:               client.CoreV1(),
		ResourceQuotaInformer:     resourcequota.Informer(e.context.InformerFactory.Core().V1().ResourceQuotas()),
		ResyncPeriod:              controller.StaticResyncPeriodFunc(recount),
		Registry:                  generic.NewRegistry(counts.Evaluators()),
		DiscoveryFunc:             kinds.namespaced,
		IgnoredResourcesFunc:      counts.IgnoredResources,
		InformersStarted:          e.context.InformersStarted,
		InformerFactory:           e.graph,
		ReplenishmentResyncPeriod: controller.NoResyncPeriodFunc,
	})
	if err != nil {
		return nil, err
	}
	return loop{names.ResourceQuotaController, func(ctx context.Context) {
		var group wait.Group
		group.StartWithContext(quiet(ctx), func(ctx context.Context) { quotas.Run(ctx, quotaWorkers) })
		group.StartWithContext(quiet(ctx), func(ctx context.Context) { quotas.Sync(ctx, kinds.namespaced, kindsMaxAge) })
		group.Wait()
	}}, nil
}

func quiet(ctx context.Context) context.Context {
	return klog.NewContext(ctx, klog.FromContext(ctx).V(quieter))
}
