package override

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// podSpecs says where kinds keep their pod spec, by kind alone, so that kinds
// of other groups that follow the pattern are understood too.
var podSpecs = map[string][]string{
	"Pod":         {"spec"},
	"ReplicaSet":  {"spec", "template", "spec"},
	"Deployment":  {"spec", "template", "spec"},
	"DaemonSet":   {"spec", "template", "spec"},
	"StatefulSet": {"spec", "template", "spec"},
	"Job":         {"spec", "template", "spec"},
}

var errNoContainers = errors.New("the kind has no containers that are known")

// containers returns the containers of obj, init containers not included.
// Changes to them change obj.
func containers(obj *unstructured.Unstructured) ([]map[string]any, error) {
	path, ok := podSpecs[obj.GetKind()]
	if !ok {
		return nil, fmt.Errorf("%s: %w", obj.GetKind(), errNoContainers)
	}
	var node any = obj.Object
	for _, key := range append(slices.Clone(path), "containers") {
		parent, ok := node.(map[string]any)
		if !ok {
			return nil, nil
		}
		node = parent[key]
	}
	list, _ := node.([]any)
	var out []map[string]any
	for _, c := range list {
		if m, ok := c.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out, nil
}

// applyStrings adds to or removes from the command or the arguments of the
// containers of one name.
func applyStrings(obj *unstructured.Unstructured, field string, o *policyv1alpha1.CommandArgsOverrider) error {
	cs, err := containers(obj)
	if err != nil {
		return err
	}
	for _, c := range cs {
		if c["name"] != o.ContainerName {
			continue
		}
		have, _ := c[field].([]any)
		switch o.Operator {
		case policyv1alpha1.OverriderOpAdd:
			have = slices.Clone(have)
			for _, v := range o.Value {
				have = append(have, v)
			}
		case policyv1alpha1.OverriderOpRemove:
			have = slices.DeleteFunc(slices.Clone(have), func(v any) bool {
				s, ok := v.(string)
				return ok && slices.Contains(o.Value, s)
			})
		default:
			return unknownOperator(o.Operator)
		}
		if len(have) > 0 || c[field] != nil {
			c[field] = have
		}
	}
	return nil
}

// applyMap changes the labels or the annotations of obj itself.
func applyMap(obj *unstructured.Unstructured, field string, o *policyv1alpha1.LabelAnnotationOverrider) error {
	have, _, err := unstructured.NestedStringMap(obj.Object, "metadata", field)
	if err != nil {
		return err
	}
	if have == nil {
		have = map[string]string{}
	}
	for k, v := range o.Value {
		_, exists := have[k]
		switch o.Operator {
		case policyv1alpha1.OverriderOpAdd:
			have[k] = v
		case policyv1alpha1.OverriderOpReplace:
			if exists {
				have[k] = v
			}
		case policyv1alpha1.OverriderOpRemove:
			delete(have, k)
		default:
			return unknownOperator(o.Operator)
		}
	}
	if len(have) == 0 {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
		return nil
	}
	return unstructured.SetNestedStringMap(obj.Object, have, "metadata", field)
}

func unknownOperator(op policyv1alpha1.OverriderOperator) error {
	return fmt.Errorf("operator %q is not one of those allowed here", op)
}
