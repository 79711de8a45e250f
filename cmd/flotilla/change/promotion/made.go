package promotion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/ownership"
)

// manager is who promotes, in managed fields. They are how an object of the hub
// remembers that a promotion made it: one that was made anew since, or that others
// have taken over as a whole, is not ours to remove.
const manager = "flotilla-promote"

// made reports whether a promotion made an object of the hub.
func made(obj client.Object) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })
}

// disown gives up what of a member's object is the fleet's in its managed fields.
// Nothing else of it changes: what the fleet applied belongs to nobody, and who
// applies it next gets it. It errs where the object bears the fleet's labels. What
// cannot be given up is shown alone where nobody could come back to it: where it is
// forbidden, and where the policy has gone.
func (u *undo) disown(ctx context.Context, g given, late string) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(g.GroupVersionKind)
		if err := u.Member.Get(ctx, g.key(), live); err != nil {
			return err
		}
		if live.Labels[workv1alpha2.ManagedByKarmadaLabel] != "" {
			return errors.New(late)
		}
		patch, err := disowned(live)
		if patch == nil || err != nil {
			return err
		}
		return u.Member.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(manager))
	})
	switch {
	case err == nil, apierrors.IsNotFound(err): // removed there, by somebody else
		return nil
	case err.Error() == late:
		return err
	case g.kept, apierrors.IsForbidden(err):
		u.returned.Notes = append(u.returned.Notes, fmt.Sprintf("%s bears the fleet in its managedFields still (%v): who applies it with --server-side needs --force-conflicts once", g.in(u.Cluster), err))
		return nil
	}
	return fmt.Errorf("see whether %s is as it was: %w", g.in(u.Cluster), err)
}

// disowned returns the merge patch that takes our entries out of an object's
// managed fields, if it is the same still; nil where there are none.
func disowned(live *metav1.PartialObjectMetadata) ([]byte, error) {
	ours := func(e metav1.ManagedFieldsEntry) bool { return e.Manager == ownership.FieldManager }
	if !slices.ContainsFunc(live.ManagedFields, ours) {
		return nil, nil
	}
	left := slices.DeleteFunc(slices.Clone(live.ManagedFields), ours)
	if len(left) == 0 {
		left = []metav1.ManagedFieldsEntry{{}} // none at all would be taken for a client that does not know them
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.UID, "resourceVersion": live.ResourceVersion, "managedFields": left,
	}})
}
