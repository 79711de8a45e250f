package housekeeping

import (
	"context"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
)

// newExpiry makes the controller that deletes Jobs of a hub which have finished, once their time to live is over. Those of a
// Kustomization stay until they leave its revision: it would bring back, and run again, what is deleted.
func (e *environment) newExpiry(ctx context.Context) (app.Controller, error) {
	client, err := e.clients.Client("ttl-after-finished-controller")
	if err != nil {
		return nil, err
	}
	// The label names the Kustomization that has applied an object.
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(withoutManagedFields),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "!" + kustomizev1.GroupVersion.Group + "/name" }))
	controller := ttlafterfinished.New(ctx, factory.Batch().V1().Jobs(), client)
	return loop{names.TTLAfterFinishedController, func(ctx context.Context) {
		factory.Start(ctx.Done())
		controller.Run(ctx, int(e.context.ComponentConfig.TTLAfterFinishedController.ConcurrentTTLSyncs))
	}}, nil
}
