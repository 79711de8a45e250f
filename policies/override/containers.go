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
var podSpecs = map[string]string{
	"Pod":         "/spec",
	"ReplicaSet":  "/spec/template/spec",
	"Deployment":  "/spec/template/spec",
	"DaemonSet":   "/spec/template/spec",
	"StatefulSet": "/spec/template/spec",
	"Job":         "/spec/template/spec",
}

// errNoList means that what should be a list of strings is none.
var errNoList = errors.New("value is not a list of strings: correct the template")

// container is one container of a manifest: changes to its fields change the
// manifest.
type container struct {
	path   string // a JSON pointer
	fields map[string]any
}

// containers returns the containers of obj, init containers not included; none
// for kinds that are not known to have any.
func containers(obj *unstructured.Unstructured) []container {
	base, ok := podSpecs[obj.GetKind()]
	if !ok {
		return nil
	}
	base += "/containers"
	node, err := lookup(obj.Object, base)
	if err != nil {
		return nil
	}
	list, _ := node.([]any)
	var out []container
	for i, c := range list {
		if fields, ok := c.(map[string]any); ok {
			out = append(out, container{fmt.Sprintf("%s/%d", base, i), fields})
		}
	}
	return out
}

// strings adds to or removes from the command or the arguments of the
// containers of one name. It returns the path that an error is about.
func (e *editor) strings(field string, o *policyv1alpha1.CommandArgsOverrider) (path string, err error) {
	size := 0
	for _, v := range o.Value {
		size += len(v)
	}
	for _, c := range containers(e.obj) {
		if c.fields["name"] != o.ContainerName {
			continue
		}
		have, ok := c.fields[field].([]any)
		if !ok && c.fields[field] != nil {
			return c.path + "/" + field, errNoList
		}
		if err := e.spend(size); err != nil {
			return c.path + "/" + field, err
		}
		if have, err = changeStrings(have, o); err != nil {
			return c.path + "/" + field, err
		}
		if len(have) > 0 || ok {
			c.fields[field] = have
		}
	}
	return "", nil
}

// changeStrings returns another list with the values added, or without every
// element that equals one of them.
func changeStrings(have []any, o *policyv1alpha1.CommandArgsOverrider) ([]any, error) {
	out := slices.Clone(have)
	switch o.Operator {
	case policyv1alpha1.OverriderOpAdd:
		for _, v := range o.Value {
			out = append(out, v)
		}
		return out, nil
	case policyv1alpha1.OverriderOpRemove:
		return slices.DeleteFunc(out, func(v any) bool {
			s, ok := v.(string)
			return ok && slices.Contains(o.Value, s)
		}), nil
	default:
		return nil, unknownOperator(o.Operator)
	}
}

// metadata changes the labels or the annotations of the manifest itself.
func (e *editor) metadata(field string, o *policyv1alpha1.LabelAnnotationOverrider) error {
	have, _, err := unstructured.NestedStringMap(e.obj.Object, "metadata", field)
	if err != nil {
		return fmt.Errorf("value is not a map of strings: correct the template")
	}
	if have == nil {
		have = map[string]string{}
	}
	for k, v := range o.Value {
		if err := e.spend(len(k) + len(v)); err != nil {
			return err
		}
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
		unstructured.RemoveNestedField(e.obj.Object, "metadata", field)
		return nil
	}
	return unstructured.SetNestedStringMap(e.obj.Object, have, "metadata", field)
}
