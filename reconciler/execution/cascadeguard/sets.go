package cascadeguard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// claimant reads and writes the volume claims of a StatefulSet in a member.
type claimant interface {
	Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error)
	Patch(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, patch []byte) error
	Clients() kubernetes.Interface
}

var _ claimant = (*members.Member)(nil)

// part separates a StatefulSet that is about to be deleted from its volume claims: the member deletes those that
// the set owns, and its retention policy may have made it the owner. It returns an error
// while the set may still own some. A set of a Work that a person wrote keeps its claims, and so does one with the
// annotation that allows their deletion.
func part(ctx context.Context, edge any, r *Removal) error {
	if r.Work.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] == "" || r.Desired != nil && Allowed(r.Desired) || Allowed(r.Work) {
		return nil
	}
	member, ok := edge.(claimant)
	if !ok {
		return errors.New("its claims cannot be looked at")
	}
	set, err := member.Get(ctx, r.Kind, r.Key)
	switch {
	case apierrors.IsNotFound(err) || errors.Is(err, members.ErrNotServed):
		return nil
	case err != nil:
		return err
	case set.GetDeletionTimestamp() != nil:
		return nil
	}
	list, err := member.Clients().CoreV1().PersistentVolumeClaims(r.Key.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the claims of %s: %w", r.Title, err)
	}
	made := volumes.MadeBy(set, list.Items)
	if len(made) == 0 {
		return nil
	}
	if err := retains(ctx, member, set, r); err != nil {
		return err
	}
	for i := range made {
		if err := disown(ctx, member, set, &made[i]); err != nil {
			return err
		}
	}
	return nil
}

// retains sets the retention policy of a set, so that it owns no claims any more. It returns an error until the set's
// controller has observed that: until then the controller would make the set their owner again.
func retains(ctx context.Context, member claimant, set *unstructured.Unstructured, r *Removal) error {
	dropped := volumes.Drops(set)
	observed, _, _ := unstructured.NestedInt64(set.Object, "status", "observedGeneration")
	if len(dropped) == 0 && observed >= set.GetGeneration() {
		return nil
	}
	if len(dropped) > 0 {
		policy := map[string]string{}
		for _, when := range dropped {
			policy[when] = string(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": set.GetUID()}, "spec": map[string]any{"persistentVolumeClaimRetentionPolicy": policy},
		})
		if err == nil {
			err = member.Patch(ctx, r.Kind, r.Key, patch)
		}
		if err != nil {
			return fmt.Errorf("have %s leave its claims: %w", r.Title, err)
		}
	}
	return fmt.Errorf("%s goes once its controller in the cluster has seen that its claims stay", r.Title)
}

// disown removes the owner references to a set, and to its Pods, from a claim.
func disown(ctx context.Context, member claimant, set *unstructured.Unstructured, claim *corev1.PersistentVolumeClaim) error {
	others := volumes.Owners(set, claim)
	if len(others) == len(claim.OwnerReferences) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": claim.UID, "resourceVersion": claim.ResourceVersion, "ownerReferences": others,
	}})
	if err == nil {
		_, err = member.Clients().CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: ownership.FieldManager})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("have PersistentVolumeClaim %s/%s outlive %s: %w", claim.Namespace, claim.Name, set.GetName(), err)
	}
	return nil
}
