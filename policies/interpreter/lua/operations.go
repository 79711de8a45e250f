package lua

import (
	"errors"
	"fmt"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua/sandbox"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

type value = lua.LValue

func (r runner) replicas(obj kinds.Object) (n int32, req *workv1alpha2.ReplicaRequirements, err error) {
	err = r.call(2, func(got sandbox.Results) error {
		if n, err = count(got.Values[0]); err != nil {
			return fmt.Errorf("returns replicas that are %w", err)
		}
		if got.Values[1] == lua.LNil {
			return nil
		}
		req, err = typed[workv1alpha2.ReplicaRequirements](got, got.Values[1], requirementsShape)
		if err != nil {
			return fmt.Errorf("returns requirements: %w", err)
		}
		if req.Namespace == "" {
			req.Namespace = obj.GetNamespace()
		}
		return requestOK(req.ResourceRequest)
	}, obj.Object)
	if err != nil {
		return 0, nil, err
	}
	return n, req, nil
}

func (r runner) components(obj kinds.Object) (parts []workv1alpha2.Component, err error) {
	err = r.call(1, func(got sandbox.Results) error {
		list, err := typed[struct {
			Items []workv1alpha2.Component `json:"items"`
		}](got, wrapped(got.Values[0]), map[string]any{"items": []any{map[string]any{"replicaRequirements": requirementsShape}}})
		if err != nil {
			return fmt.Errorf("returns components: %w", err)
		}
		parts = list.Items
		return componentsOK(parts)
	}, obj.Object)
	if err != nil {
		return nil, err
	}
	return parts, nil
}

// wrapped puts a list below the name items, so that errors can point to its
// elements.
func wrapped(x value) value {
	t := &lua.LTable{Metatable: lua.LNil}
	t.RawSetString("items", x)
	return t
}

func (r runner) revise(obj kinds.Object, n int32) (out kinds.Object, err error) {
	err = r.call(1, func(got sandbox.Results) error {
		out, err = object(got, got.Values[0], obj)
		return err
	}, obj.Object, n)
	return out, err
}

func (r runner) retain(desired, observed kinds.Object) (out kinds.Object, err error) {
	err = r.call(1, func(got sandbox.Results) error {
		out, err = object(got, got.Values[0], desired)
		return err
	}, desired.Object, observed.Object)
	return out, err
}

func (r runner) reflect(observed kinds.Object) (status map[string]any, err error) {
	err = r.call(1, func(got sandbox.Results) error {
		if got.Values[0] == lua.LNil {
			return nil
		}
		status, err = table(got, got.Values[0], like(observed.Object["status"]))
		return err
	}, observed.Object)
	return status, err
}

func (r runner) health(observed kinds.Object) (healthy bool, err error) {
	err = r.call(1, func(got sandbox.Results) error {
		answer, ok := got.Values[0].(lua.LBool)
		if !ok {
			return fmt.Errorf("returns a %s instead of true or false", got.Values[0].Type())
		}
		healthy = bool(answer)
		return nil
	}, observed.Object)
	return healthy, err
}

func (r runner) aggregate(template kinds.Object, items []workv1alpha2.AggregatedStatusItem) (status map[string]any, err error) {
	given, shape, err := statusItems(template, items)
	if err != nil {
		return nil, err
	}
	err = r.call(1, func(got sandbox.Results) error {
		t, ok := got.Values[0].(*lua.LTable)
		if !ok {
			return fmt.Errorf("returns a %s instead of the object", got.Values[0].Type())
		}
		x := got.Field(t, "status")
		if x == lua.LNil {
			return nil
		}
		status, err = table(got, x, shape)
		if err != nil {
			return fmt.Errorf("returns a status that %w", err)
		}
		return nil
	}, template.Object, given)
	return status, err
}

// statusItems returns the items as scripts get them, and an example of the kind's
// status, which is put together from the template's and those that members
// report.
func statusItems(template kinds.Object, items []workv1alpha2.AggregatedStatusItem) (given []any, shape map[string]any, err error) {
	given, shape = make([]any, len(items)), map[string]any{}
	for i := range items {
		item := &items[i]
		out := map[string]any{"clusterName": item.ClusterName}
		if item.Status != nil && len(item.Status.Raw) > 0 {
			var status any
			if err := utiljson.Unmarshal(item.Status.Raw, &status); err != nil {
				return nil, nil, fmt.Errorf("status of cluster %s: %w", item.ClusterName, err)
			}
			out["status"] = status
			for name, x := range like(status) {
				shape[name] = x
			}
		}
		if item.Applied {
			out["applied"] = true
		}
		if item.AppliedMessage != "" {
			out["appliedMessage"] = item.AppliedMessage
		}
		if item.Health != "" {
			out["health"] = string(item.Health)
		}
		given[i] = out
	}
	for name, x := range like(template.Object["status"]) {
		shape[name] = x
	}
	return given, shape, nil
}

func (r runner) dependencies(obj kinds.Object) (deps []kinds.Dependency, err error) {
	err = r.call(1, func(got sandbox.Results) error {
		if got.Values[0] == lua.LNil {
			return nil
		}
		list, err := typed[struct {
			Items []kinds.Dependency `json:"items"`
		}](got, wrapped(got.Values[0]), map[string]any{"items": []any{map[string]any{"labelSelector": map[string]any{"matchLabels": map[string]any{}}}}})
		if err != nil {
			return fmt.Errorf("returns dependencies: %w", err)
		}
		for i := range list.Items {
			if err := dependencyOK(&list.Items[i]); err != nil {
				return fmt.Errorf("returns dependency %d, which %w", i+1, err)
			}
		}
		deps = rules.Union(list.Items)
		return nil
	}, obj.Object)
	if err != nil {
		return nil, err
	}
	return deps, nil
}

func dependencyOK(d *kinds.Dependency) error {
	gv, err := schema.ParseGroupVersion(d.APIVersion)
	switch {
	case d.APIVersion == "":
		return errors.New("has no apiVersion")
	case err != nil || gv.Version == "":
		return fmt.Errorf("has the apiVersion %q, which is none", sandbox.Line(d.APIVersion))
	case d.Kind == "":
		return errors.New("has no kind")
	case d.Name == "" && d.LabelSelector == nil:
		return errors.New("has neither a name nor a labelSelector")
	}
	if _, err := metav1.LabelSelectorAsSelector(d.LabelSelector); err != nil {
		return fmt.Errorf("has a labelSelector that cannot be used: %s", sandbox.Line(err.Error()))
	}
	return nil
}

// count converts a number of replicas that a script returned.
func count(x value) (int32, error) {
	n, ok := x.(lua.LNumber)
	switch {
	case !ok:
		return 0, fmt.Errorf("a %s", x.Type())
	case float64(n) != math.Trunc(float64(n)) || n < 0 || n > math.MaxInt32:
		return 0, fmt.Errorf("%v", float64(n))
	default:
		return int32(n), nil
	}
}

func like(x any) map[string]any {
	m, _ := x.(map[string]any)
	return m
}

// table converts a table with names as keys; was is what the script was given in
// its place.
func table(got sandbox.Results, x value, was map[string]any) (map[string]any, error) {
	if was == nil {
		was = map[string]any{} // so that an empty table is not taken for a list
	}
	out, err := got.Export(x, was)
	if err != nil {
		return nil, place(err)
	}
	m, ok := out.(map[string]any)
	switch {
	case ok:
		return m, nil
	case x.Type() == lua.LTTable:
		if list, ok := out.([]any); ok && len(list) == 0 {
			return map[string]any{}, nil
		}
		return nil, errors.New("returns a list instead of a table with names")
	default:
		return nil, fmt.Errorf("returns a %s instead of a table", x.Type())
	}
}

// place completes an error about what was returned; errors about a part of it
// begin with its path.
func place(err error) error {
	if strings.Contains(err.Error(), ": ") {
		return fmt.Errorf("returns a table in which %w", err)
	}
	return fmt.Errorf("returns what %w", err)
}

// object converts an object that a script returned. It has to be the one that the
// script was given, by kind, namespace and name.
func object(got sandbox.Results, x value, was kinds.Object) (kinds.Object, error) {
	m, err := table(got, x, was.Object)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{Object: m}
	for _, id := range []struct{ field, was, is string }{
		{"apiVersion", was.GetAPIVersion(), out.GetAPIVersion()},
		{"kind", was.GetKind(), out.GetKind()},
		{"metadata.namespace", was.GetNamespace(), out.GetNamespace()},
		{"metadata.name", was.GetName(), out.GetName()},
	} {
		if id.was != id.is {
			return nil, fmt.Errorf("returns another object: its %s is %q instead of %q", id.field, sandbox.Line(id.is), id.was)
		}
	}
	return out, nil
}

// typed converts a table into a value of a Go type. Empty tables count as lists
// unless shape has an object in their place.
func typed[T any](got sandbox.Results, x value, shape map[string]any) (*T, error) {
	out, err := got.Export(x, shape)
	if err != nil {
		return nil, err
	}
	m, ok := out.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("is a %s", x.Type())
	}
	t, err := rules.Typed[T](m)
	if err != nil {
		return nil, errors.New(sandbox.Line(err.Error()))
	}
	return t, nil
}

// requirementsShape shows which fields of requirements are objects.
var requirementsShape = map[string]any{
	"nodeClaim":       map[string]any{"nodeSelector": map[string]any{}, "hardNodeAffinity": map[string]any{}},
	"resourceRequest": map[string]any{},
}
