package cascadingdeletion

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/interpreter/running"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// carried classifies an object of a third-party kind by its binding: with replicas or components, which come from a
// customization or a webhook, it runs Pods; with any other binding it may. Other kinds, and objects without a binding,
// are passive here.
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
