package forecast

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// State is what a control plane holds, or will hold.
type State struct {
	// Fleet is all that decides what clusters hold.
	Fleet plan.FleetInput
	// Kustomizations are all there are.
	Kustomizations map[client.ObjectKey]*kustomizev1.Kustomization
	// Owned is what each of them has applied.
	Owned map[client.ObjectKey][]inventory.Entry
	// Objects are those that are known: all of Fleet, and what files have besides.
	Objects map[inventory.ID]*unstructured.Unstructured

	// refused is why a Kustomization has not applied the files that the state comes from, as a text.
	refused map[client.ObjectKey]string
	// suspended are the Kustomizations that files suspend.
	suspended map[client.ObjectKey]bool
	// contents are what Kustomizations of the source have in the files that the state comes from; nil if it comes of none.
	contents map[client.ObjectKey]content
}

// StateOf returns the state of a control plane. What a Kustomization has applied is what its status lists or, where it
// lists nothing, what has its labels.
func StateOf(fleet plan.FleetInput, kustomizations []kustomizev1.Kustomization) (State, error) {
	s := State{
		Fleet: fleet, Kustomizations: map[client.ObjectKey]*kustomizev1.Kustomization{}, Owned: map[client.ObjectKey][]inventory.Entry{},
		Objects: map[inventory.ID]*unstructured.Unstructured{}, refused: map[client.ObjectKey]string{}, suspended: map[client.ObjectKey]bool{},
	}
	for i := range kustomizations {
		ks := &kustomizations[i]
		s.Kustomizations[client.ObjectKeyFromObject(ks)] = ks
		if err := s.add(ks, kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind)); err != nil {
			return s, err
		}
	}
	for _, t := range fleet.Templates {
		s.Objects[inventory.IDOf(t)] = t
	}
	for _, p := range fleet.Policies {
		if err := s.add(p, policyv1alpha1.GroupVersion.WithKind(propagation.KindOf(p))); err != nil {
			return s, err
		}
	}
	for _, o := range fleet.Overrides {
		if err := s.add(o, policyv1alpha1.GroupVersion.WithKind(kindOfOverride(o))); err != nil {
			return s, err
		}
	}
	for _, q := range fleet.Quotas {
		if err := s.add(q, policyv1alpha1.GroupVersion.WithKind(quotaKind)); err != nil {
			return s, err
		}
	}
	return s, s.own()
}

func (s State) add(obj runtime.Object, gvk schema.GroupVersionKind) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fmt.Errorf("read a %s: %w", gvk.Kind, err)
	}
	out := &unstructured.Unstructured{Object: fields}
	out.SetGroupVersionKind(gvk)
	s.Objects[inventory.IDOf(out)] = out
	return nil
}

// own finds out what each Kustomization has applied.
func (s State) own() error {
	labelled := map[client.ObjectKey][]inventory.Entry{}
	for id, obj := range s.Objects {
		if owner, has := inventory.OwnerOf(obj); has {
			labelled[owner] = append(labelled[owner], inventory.Entry{ID: id, Version: obj.GroupVersionKind().Version})
		}
	}
	for key, ks := range s.Kustomizations {
		entries, err := inventory.Here(ks)
		if err != nil {
			return fmt.Errorf("read what Kustomization %s has applied: %w", key, err)
		}
		if ks.Status.Inventory == nil {
			entries = inventory.Union(nil, labelled[key])
		}
		s.Owned[key] = entries
	}
	return nil
}

// clone returns a copy whose maps can be changed.
func (s State) clone() State {
	s.Kustomizations, s.Owned, s.Objects = maps.Clone(s.Kustomizations), maps.Clone(s.Owned), maps.Clone(s.Objects)
	s.refused, s.suspended = maps.Clone(s.refused), maps.Clone(s.suspended)
	return s
}

// observed returns the objects that a Kustomization owns by their labels, as the apply loop sees them.
func (s State) observed(key client.ObjectKey, entries []inventory.Entry) map[inventory.ID]*unstructured.Unstructured {
	out := map[inventory.ID]*unstructured.Unstructured{}
	for _, e := range entries {
		if obj := s.Objects[e.ID]; obj != nil {
			if owner, _ := inventory.OwnerOf(obj); owner == key {
				out[e.ID] = obj
			}
		}
	}
	return out
}

// sorted returns the names of Kustomizations, the oldest first; those that do not exist yet come last.
func sorted(all map[client.ObjectKey]*kustomizev1.Kustomization) []client.ObjectKey {
	return slices.SortedFunc(maps.Keys(all), func(a, b client.ObjectKey) int {
		x, y := all[a].CreationTimestamp, all[b].CreationTimestamp
		if x.IsZero() != y.IsZero() {
			if x.IsZero() {
				return 1
			}
			return -1
		}
		return cmp.Or(x.Compare(y.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
