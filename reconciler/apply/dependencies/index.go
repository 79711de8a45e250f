package dependencies

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// index is the name of the cache's index of Kustomizations by what they depend on.
const index = "dependsOn"

// Index adds to the cache of a manager the index that On uses.
func Index(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &kustomizev1.Kustomization{}, index, indexed); err != nil {
		return fmt.Errorf("index Kustomizations by what they depend on: %w", err)
	}
	return nil
}

func indexed(obj client.Object) []string {
	ks, ok := obj.(*kustomizev1.Kustomization)
	if !ok {
		return nil
	}
	var out []string
	for _, ref := range ks.Spec.DependsOn {
		out = append(out, Key(ks, ref).String())
	}
	return out
}

// Some reports whether any Kustomization depends on the given one.
func Some(ctx context.Context, hub client.Reader, dependency client.ObjectKey) (bool, error) {
	var list kustomizev1.KustomizationList
	if err := hub.List(ctx, &list, On(dependency), client.Limit(1), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("look who depends on %s: %w", dependency, err)
	}
	return len(list.Items) > 0, nil
}

// On is an option of List that selects the Kustomizations that depend on the given one.
func On(dependency client.ObjectKey) client.ListOption {
	return client.MatchingFields{index: dependency.String()}
}
