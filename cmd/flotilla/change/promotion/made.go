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

// manager is the field manager of promotions. By it an object of the hub shows that a
// promotion created it: one that was created again since, or that others have taken over
// completely, must not be removed.
const manager = "flotilla-promote"

// made reports whether a promotion created an object of the hub.
func made(obj client.Object) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })
}

// disown removes the fleet from the managed fields of a member's object and changes nothing
// else: the next client that applies these fields owns them. It returns an error if the
// object still has the fleet's labels. If the removal fails it only adds a note where a
// retry is of no use: if it is forbidden, and if the policy is already gone.
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
	case err == nil, apierrors.IsNotFound(err): // somebody else has deleted it
		return nil
	case err.Error() == late:
		return err
	case g.kept, apierrors.IsForbidden(err):
		u.returned.Notes = append(u.returned.Notes, fmt.Sprintf("%s bears the fleet in its managedFields still (%v): who applies it with --server-side needs --force-conflicts once", g.in(u.Cluster), err))
		return nil
	}
	return fmt.Errorf("see whether %s is as it was: %w", g.in(u.Cluster), err)
}

// disowned returns a merge patch that removes our entries from an object's managed fields and
// applies to this version only; nil if there are none.
func disowned(live *metav1.PartialObjectMetadata) ([]byte, error) {
	ours := func(e metav1.ManagedFieldsEntry) bool { return e.Manager == ownership.FieldManager }
	if !slices.ContainsFunc(live.ManagedFields, ours) {
		return nil, nil
	}
	left := slices.DeleteFunc(slices.Clone(live.ManagedFields), ours)
	if len(left) == 0 {
		left = []metav1.ManagedFieldsEntry{{}} // the server would ignore an empty list
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.UID, "resourceVersion": live.ResourceVersion, "managedFields": left,
	}})
}
