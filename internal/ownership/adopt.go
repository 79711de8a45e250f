package ownership

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
	taken, in := map[string]any{}, &reader{}
	var entries []any
	at := ""
	for _, entry := range entriesOf(live) {
		fields, _ := entry["fieldsV1"].(map[string]any)
		if entry["apiVersion"] != desired.GetAPIVersion() || !yields(entry) || fields == nil {
			entries = append(entries, entry)
			continue
		}
		left := runtime.DeepCopyJSON(fields)
		got := in.take(left, desired.Object)
		unite(taken, got)
		if time, _ := entry["time"].(string); time > at {
			at = time
		}
		if len(left) > 0 {
			entry = runtime.DeepCopyJSON(entry)
			entry["fieldsV1"] = left
			entries = append(entries, entry)
		}
	}
	if len(taken) == 0 {
		return nil, nil
	}
	ours := map[string]any{
		"manager": FieldManager, "operation": string(metav1.ManagedFieldsOperationApply), "apiVersion": desired.GetAPIVersion(),
		"fieldsType": "FieldsV1", "fieldsV1": taken,
	}
	if at != "" {
		ours["time"] = at
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "managedFields": append(entries, ours),
	}})
	if err != nil {
		return nil, fmt.Errorf("encode who owns %s %s: %w", live.GetKind(), live.GetName(), err)
	}
	return patch, nil
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

// take removes from fields what names a value of desired, and returns it.
func (r *reader) take(fields map[string]any, desired any) map[string]any {
	out := map[string]any{}
	for element, sub := range fields {
		if element == "." {
			continue
		}
		want, wanted, err := r.reach(element, desired)
		if err != nil || !wanted {
			continue
		}
		below, _ := sub.(map[string]any)
		if len(below) == 0 || scalar(want) {
			out[element] = map[string]any{}
			delete(fields, element)
			continue
		}
		got := r.take(below, want)
		if _, itself := below["."]; itself {
			got["."] = map[string]any{}
			delete(below, ".")
		}
		if len(got) > 0 {
			out[element] = got
		}
		if len(below) == 0 {
			delete(fields, element)
		}
	}
	return out
}

// reach is step, for desired: key fields that have a default may be missing.
func (r *reader) reach(element string, value any) (any, bool, error) {
	keys := keyOf(element)
	if keys == nil {
		return r.step(element, value)
	}
	items, _ := value.([]any)
	return r.counterpart(keys, keys, items)
}

// unite adds one field set to another.
func unite(into, from map[string]any) {
	for element, sub := range from {
		below, _ := sub.(map[string]any)
		have, ok := into[element].(map[string]any)
		if !ok {
			into[element] = sub
			continue
		}
		unite(have, below)
	}
}
