package losses

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/interpreter/running"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// carried is what an object of which nothing is known by its kind is by its placement: one with replicas, as a customization
// or a webhook says, runs Pods; another one may, if it is placed at all.
func (c *Counter) carried(ctx context.Context, id inventory.ID) (running.Class, error) {
	if running.Of(id.GroupKind) != running.Foreign {
		return running.Passive, nil
	}
	b, found, err := bindings.Carrying(ctx, c.hub, id.GroupKind, client.ObjectKey{Namespace: id.Namespace, Name: id.Name})
	if err != nil || !found {
		return running.Passive, err
	}
	if spec := b.BindingSpec(); spec.Replicas > 0 || spec.ReplicaRequirements != nil || len(spec.Components) > 0 {
		return running.Runs, nil
	}
	return running.Foreign, nil
}
