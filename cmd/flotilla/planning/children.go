package planning

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// kustomizationsIn returns the Kustomizations among objects.
func kustomizationsIn(objects []*unstructured.Unstructured) map[client.ObjectKey]*kustomizev1.Kustomization {
	out := map[client.ObjectKey]*kustomizev1.Kustomization{}
	for _, ks := range siblings.ChildrenIn(objects) {
		out[client.ObjectKeyFromObject(ks)] = ks
	}
	return out
}

// notFollowed returns what of a change the plan does not show: what Kustomizations that it brings, changes or removes do
// with it.
func notFollowed(before, after map[client.ObjectKey]*kustomizev1.Kustomization) []comparison.Risk {
	var out []comparison.Risk
	note := func(ks *kustomizev1.Kustomization, what string) {
		source := inventory.SourceOf(ks)
		out = append(out, comparison.Risk{
			Reason:  comparison.RiskNotFollowed,
			Object:  &comparison.Object{APIVersion: kustomizev1.GroupVersion.String(), Kind: kustomizev1.KustomizationKind, Namespace: ks.Namespace, Name: ks.Name},
			Message: fmt.Sprintf("Kustomization %s %s: add --source %s/%s.%s, with the root of its repository as the folder", client.ObjectKeyFromObject(ks), what, strings.ToLower(source.Kind), source.Name, source.Namespace),
		})
	}
	for key, ks := range before {
		switch now := after[key]; {
		case now == nil:
			note(ks, "goes, and what it has applied is not planned here")
		case !equality.Semantic.DeepEqual(ks.Spec, now.Spec):
			note(now, "changes, and what it applies is not planned here")
		}
	}
	for key, ks := range after {
		if before[key] == nil {
			note(ks, "comes, and what it applies is not planned here")
		}
	}
	slices.SortFunc(out, func(a, b comparison.Risk) int { return cmp.Compare(a.Message, b.Message) })
	return out
}
