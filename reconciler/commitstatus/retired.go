package commitstatus

import (
	"context"
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// reasonOf is the reason of a Kustomization's condition Ready; empty where it has none.
func reasonOf(ks *kustomizev1.Kustomization) string {
	if ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition); ready != nil {
		return ready.Reason
	}
	return ""
}

// mostParents bounds how far up it is looked for who applied a Kustomization.
const mostParents = 8

// parentsOf returns the Kustomization that applied one, the one that applied that, and so on, as namespace/name. A commit
// may retire several of them at once: whoever is left speaks for them.
func parentsOf(ctx context.Context, hub client.Reader, ks *kustomizev1.Kustomization) ([]string, error) {
	var out []string
	for of := ks; len(out) < mostParents; {
		key, owned := inventory.OwnerOf(of)
		if !owned || slices.Contains(out, key.String()) {
			break
		}
		out = append(out, key.String())
		of = &kustomizev1.Kustomization{}
		if err := hub.Get(ctx, key, of, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read the Kustomization %s: %w", key, err)
		}
	}
	return out, nil
}

// isRetired reports whether a Kustomization has nothing to apply any more, and is to be removed by one of all that is
// not applied either: once that is mended, it goes.
func isRetired(ks *kustomizev1.Kustomization, all []kustomizev1.Kustomization) bool {
	parent, owned := inventory.OwnerOf(ks)
	if !owned || reasonOf(ks) != inventory.ReasonPathNotFound {
		return false
	}
	return slices.ContainsFunc(all, func(of kustomizev1.Kustomization) bool {
		ready := apimeta.FindStatusCondition(of.Status.Conditions, meta.ReadyCondition)
		return client.ObjectKeyFromObject(&of) == parent && ready != nil && ready.Status == metav1.ConditionFalse && !slices.Contains(passing, ready.Reason)
	})
}
