package ownership

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// deployers are the field managers that bring objects to clusters by server-side
// apply. What they applied and is applied from here is theirs no longer.
var deployers = []string{"kubectl", "helm", "helm-controller", "kustomize-controller", "argocd-controller", "karmada", "before-first-apply"}

// residents are the field managers that belong to every cluster: what they set
// stays theirs.
var residents = []string{"kube-controller-manager", "kube-scheduler", "kube-apiserver", "kubelet", "cloud-controller-manager"}

// Adopt returns the patch that takes the fields which desired names from those
// who brought the object to the member before, so that they are ours alone once
// desired is applied, and go when desired no longer names them. Nothing else of
// the object changes. It is nil where there is nothing to take: where we have
// applied the object before, or nobody else has set such a field.
//
// Fields are taken from all that wrote the object without server-side apply,
// people and programs, but not from the cluster's own components and not from
// who writes through a subresource; and of those that use server-side apply from
// the ones that are known to deploy. What desired does not name stays theirs.
func Adopt(desired, live *unstructured.Unstructured) ([]byte, error) {
	if len(ownedFields(live)) > 0 {
		return nil, nil
	}
	var (
		entries []any
		taken   []*fieldpath.Set
		in      = &reader{}
		at      = ""
	)
	for _, entry := range entriesOf(live) {
		fields, readable := takeable(entry, desired)
		if !readable {
			entries = append(entries, entry)
			continue
		}
		// Ours is dated like the latest of those that it stands for: nothing was applied now.
		if time, _ := entry["time"].(string); time > at {
			at = time
		}
		got := in.take(fields, desired.Object)
		left, err := without(entry, fields, got)
		if err != nil {
			return nil, err
		}
		entries = append(entries, left...)
		if !got.Empty() {
			taken = append(taken, got)
		}
	}
	if len(taken) == 0 {
		return nil, nil
	}
	ours := map[string]any{}
	if at != "" {
		ours["time"] = at
	}
	return handOver(desired, live, entries, ours, taken)
}

// yields reports whether the fields of an entry of managedFields can be taken.
func yields(entry map[string]any) bool {
	manager, _ := entry["manager"].(string)
	if subresource, _ := entry["subresource"].(string); subresource != "" {
		return false
	}
	if entry["operation"] == string(metav1.ManagedFieldsOperationApply) {
		return slices.Contains(deployers, manager)
	}
	return !slices.Contains(residents, manager)
}

// take returns what of a field set names a value of desired.
func (r *reader) take(fields *fieldpath.Set, desired any) *fieldpath.Set {
	out := &fieldpath.Set{}
	for element := range fields.Members.All() {
		if _, wanted := r.reach(element, desired); wanted {
			out.Members.Insert(element)
		}
	}
	for element := range fields.Children.All() {
		want, wanted := r.reach(element, desired)
		if !wanted {
			continue
		}
		below, _ := fields.Children.Get(element)
		if scalar(want) { // nothing is below it any more
			out.Members.Insert(element)
		} else if below = r.take(below, want); below.Empty() {
			continue
		}
		*out.Children.Descend(element) = *below
	}
	return out
}

// reach is step, for desired: key fields that have a default may be missing.
func (r *reader) reach(element fieldpath.PathElement, value any) (any, bool) {
	name, err := fieldpath.SerializePathElement(element)
	if err != nil {
		return nil, false
	}
	keys := keyOf(name)
	if keys == nil {
		child, found, err := r.step(name, value)
		return child, found && err == nil
	}
	items, _ := value.([]any)
	child, found, err := r.counterpart(keys, keys, items)
	return child, found && err == nil
}

// encode returns a field set as metadata.managedFields hold it.
func encode(set *fieldpath.Set) (json.RawMessage, error) {
	data, err := set.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("encode a field set: %w", err)
	}
	return data, nil
}
