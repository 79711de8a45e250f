package health

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// takenRules returns a part for each policy or override policy in the owner's inventory that another Kustomization has
// applied since, so that it holds what that one asks for. For templates see Reader.part.
func takenRules(ctx context.Context, hub client.Reader, owner client.ObjectKey, entries []inventory.Entry) ([]rollup.Part, error) {
	var parts []rollup.Part
	for _, e := range entries {
		obj := inventory.NewRule(e.ID.GroupKind)
		if obj == nil {
			continue
		}
		err := hub.Get(ctx, client.ObjectKey{Namespace: e.ID.Namespace, Name: e.ID.Name}, obj)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", inventory.Describe(e.ID), err)
		}
		if applied(owner, obj) {
			continue
		}
		if reason, taken := takenBy(owner, obj); taken {
			parts = append(parts, rollup.Part{Object: nameOf(e.ID, obj), State: rollup.Progressing, Reason: reason})
		}
	}
	return parts, nil
}
