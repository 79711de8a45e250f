package planning

import (
	"cmp"
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-io/flotilla/policies/plan/comparison"
)

// specs are Kustomizations by their names: what each asks for.
type specs map[key]any

// specsIn returns those among objects.
func specsIn(objects []*unstructured.Unstructured) specs {
	out := specs{}
	for _, obj := range objects {
		if gk := obj.GroupVersionKind().GroupKind(); gk.Group == kustomizev1.GroupVersion.Group && gk.Kind == kustomizev1.KustomizationKind {
			out[keyOfObject(obj)] = obj.Object["spec"]
		}
	}
	return out
}

// specsOf returns those that the control plane holds.
func specsOf(all []kustomizev1.Kustomization, of func(metav1.Object) bool) (specs, error) {
	out := specs{}
	for i := range all {
		if !of(&all[i]) {
			continue
		}
		obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&all[i])
		if err != nil {
			return nil, err
		}
		out[keyOf(&all[i], kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind))] = obj["spec"]
	}
	return out, nil
}

// children returns what the plan does not follow of objects that were files before, if there were any, or stand on the control
// plane: there the others of their owner go.
func (w *world) children(was, objects []*unstructured.Unstructured, files bool) ([]comparison.Risk, error) {
	after := specsIn(objects)
	if files {
		return notFollowed(specsIn(was), after), nil
	}
	before, err := specsOf(w.snapshot.Kustomizations, func(ks metav1.Object) bool {
		_, given := after[keyOf(ks, kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind))]
		labels := ks.GetLabels()
		return given || w.prune && !kept(ks) && w.owner != "" && labels[owners[1]]+"/"+labels[owners[0]] == w.owner
	})
	return notFollowed(before, after), err
}

// notFollowed returns what of a change the plan does not show: what Kustomizations that it brings, changes or removes do
// with it.
func notFollowed(before, after specs) []comparison.Risk {
	var out []comparison.Risk
	note := func(k key, what string) {
		name := k.namespace + "/" + k.name
		out = append(out, comparison.Risk{
			Reason:  comparison.RiskNotFollowed,
			Object:  &comparison.Object{APIVersion: kustomizev1.GroupVersion.String(), Kind: k.kind, Namespace: k.namespace, Name: k.name},
			Message: fmt.Sprintf("Kustomization %s %s, which is not planned here: flotilla plan FOLDER --kustomization %s says it of one that stays", name, what, name),
		})
	}
	for k, spec := range before {
		switch now, stays := after[k]; {
		case !stays:
			note(k, "goes, and what it has applied goes with it, unless another one takes it or the brake refuses that")
		case !equality.Semantic.DeepEqual(spec, now):
			note(k, "changes, and with it what it applies")
		}
	}
	for k := range after {
		if _, was := before[k]; !was {
			note(k, "comes, with what it applies")
		}
	}
	slices.SortFunc(out, func(a, b comparison.Risk) int { return cmp.Compare(a.Message, b.Message) })
	return out
}
