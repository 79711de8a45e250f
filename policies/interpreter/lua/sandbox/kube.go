package sandbox

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// kubeLibrary is the module that scripts get with require("kube").
var kubeLibrary = functions(map[string]lua.LGFunction{
	"accuratePodRequirements": kubePodRequirements, "getPodDependencies": kubePodDependencies,
	"getResourceQuantity": kubeQuantity, "resourceAdd": kubeAdd,
})

// quantity returns argument n as a quantity, which may be text or a number; nil
// is zero.
func quantity(l *lua.LState, n int) resource.Quantity {
	of(l).pay(20, 1024)
	x := l.Get(n)
	if text, ok := x.(lua.LString); ok {
		of(l).pay(len(text)/textPerStep, 0)
	}
	if x == lua.LNil {
		return resource.Quantity{}
	}
	if !lua.LVCanConvToString(x) {
		l.ArgError(n, "a quantity expected, got a "+x.Type().String())
	}
	q, err := rules.Quantity(x.String())
	if err != nil {
		l.ArgError(n, err.Error())
	}
	return q
}

// kubeAdd adds quantities.
func kubeAdd(l *lua.LState) int {
	sum := resource.Quantity{}
	for i := 1; i <= l.GetTop(); i++ {
		q := quantity(l, i)
		if i == 1 {
			sum = q
		} else {
			sum.Add(q)
		}
	}
	l.Push(lua.LString(sum.String()))
	return 1
}

// kubeQuantity returns a quantity as a number.
func kubeQuantity(l *lua.LState) int {
	if l.GetTop() != 1 {
		l.RaiseError("getResourceQuantity takes one argument")
	}
	q := quantity(l, 1)
	l.Push(lua.LNumber(q.AsApproximateFloat64()))
	return 1
}

// podSpec returns the spec of the pod template that is the first argument. A spec
// that the script has not looked into is not copied, as it is only read.
func podSpec(l *lua.LState) map[string]any {
	v := of(l)
	var spec any
	x := v.table(1).RawGetString("spec")
	if t, ok := x.(*lua.LTable); ok && t.Metatable == v.unfilled {
		spec = v.origins[t].value
		v.pay(0, 48*weight(spec)) // the typed spec that it is converted into is far larger
	} else {
		e := exporter{vm: v}
		copied, err := e.value(x, map[string]any{})
		if err != nil {
			l.ArgError(1, "a pod template, whose spec "+Line(strings.Join(append(e.path, err.Error()), " ")))
		}
		v.pay(0, 48*e.size)
		spec = copied
	}
	v.pay(500, 4096)
	object, _ := spec.(map[string]any)
	return object
}

// weight estimates how many bytes a value takes.
func weight(x any) int {
	n := 16
	switch x := x.(type) {
	case string:
		n += len(x)
	case []any:
		for _, e := range x {
			n += weight(e)
		}
	case map[string]any:
		for name, e := range x {
			n += len(name) + weight(e)
		}
	}
	return n
}

// kubePodRequirements returns what one pod of a template requests; nil for
// nothing.
func kubePodRequirements(l *lua.LState) int {
	req, err := rules.Requirements("", podSpec(l))
	if err != nil {
		l.ArgError(1, Line(err.Error()))
	}
	if req == nil {
		l.Push(lua.LNil)
		return 1
	}
	return pushTyped(l, req)
}

// kubePodDependencies returns what pods of a template cannot run without.
func kubePodDependencies(l *lua.LState) int {
	deps, err := rules.PodDependencies(l.OptString(2, ""), podSpec(l))
	if err != nil {
		l.ArgError(1, Line(err.Error()))
	}
	list := make([]any, len(deps))
	for i, d := range deps {
		of(l).pay(4, 1024)
		list[i] = map[string]any{"apiVersion": d.APIVersion, "kind": d.Kind, "namespace": d.Namespace, "name": d.Name}
	}
	l.Push(of(l).value(list))
	return 1
}

func pushTyped(l *lua.LState, typed any) int {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		l.RaiseError("%s", Line(err.Error()))
	}
	l.Push(of(l).value(object))
	return 1
}
