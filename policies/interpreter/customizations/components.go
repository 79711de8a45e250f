package customizations

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

type (
	components = []workv1alpha2.Component
	needed     = workv1alpha2.ReplicaRequirements
)

// mostName is how long the name of a component may be.
const mostName = 32

// roster collects components under distinct names.
type roster struct {
	namespace string
	parts     components
	err       error
}

// pods adds a component whose replicas are pods of a spec.
func (r *roster) pods(name string, replicas int64, podSpec map[string]any) {
	need, err := requirements(r.namespace, podSpec)
	if err != nil {
		r.fail(name, err)
		return
	}
	r.add(name, replicas, need)
}

func (r *roster) add(name string, replicas int64, need *needed) {
	if replicas < 0 || replicas > math.MaxInt32 {
		r.fail(name, fmt.Errorf("%d is no number of replicas", replicas))
		return
	}
	part := workv1alpha2.Component{Name: r.distinct(name), Replicas: int32(replicas)}
	if need != nil {
		part.ReplicaRequirements = &workv1alpha2.ComponentReplicaRequirements{
			NodeClaim: need.NodeClaim, ResourceRequest: need.ResourceRequest,
		}
	}
	r.parts = append(r.parts, part)
}

func (r *roster) fail(name string, err error) {
	if r.err == nil {
		r.err = fmt.Errorf("component %s: %w", name, err)
	}
}

// distinct returns a name that fits and that no component has yet.
func (r *roster) distinct(name string) string {
	taken := func(name string) bool {
		return slices.ContainsFunc(r.parts, func(c workv1alpha2.Component) bool { return c.Name == name })
	}
	short := name[:min(len(name), mostName)]
	for i := 2; taken(short) || short == ""; i++ {
		suffix := fmt.Sprintf("-%d", i)
		short = name[:min(len(name), mostName-len(suffix))] + suffix
	}
	return short
}

func (r *roster) result() (components, error) { return r.parts, r.err }

// countOr returns the number at a path, or another where there is none.
func countOr(none int64, m map[string]any, path ...string) int64 {
	if rules.Value(m, path...) == nil {
		return none
	}
	return rules.Number(m, path...)
}

// roles are components by the names of an object's fields, each with replicas,
// one if it does not say, and a pod template.
func roles(path string) func(kinds.Object) (components, error) {
	return func(obj kinds.Object) (components, error) {
		r := roster{namespace: obj.GetNamespace()}
		all := rules.Object(obj.Object, at(path)...)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			role := rules.Object(all, name)
			r.pods(strings.ToLower(name), countOr(1, role, "replicas"), rules.Object(role, "template", "spec"))
		}
		return r.result()
	}
}

// tasks are components by the entries of a list, each with a name and a pod
// template, and as many replicas as a rule says.
func tasks(path, template string, count func(task map[string]any) int64) func(kinds.Object) (components, error) {
	return func(obj kinds.Object) (components, error) {
		r := roster{namespace: obj.GetNamespace()}
		for _, task := range rules.Objects(obj.Object, at(path)...) {
			r.pods(rules.Text(task, "name"), count(task), rules.Object(task, append(at(template), "spec")...))
		}
		return r.result()
	}
}

// replicas counts at a path, or as many where it says nothing, each made from a
// pod template.
func replicas(path string, none int32, template string) func(kinds.Object) (int32, *needed, error) {
	return func(obj kinds.Object) (int32, *needed, error) {
		n, err := rules.Count(obj.Object, at(path)...)
		if err != nil {
			return 0, nil, err
		}
		if rules.Value(obj.Object, at(path)...) == nil {
			n = none
		}
		req, err := requirements(obj.GetNamespace(), rules.Object(obj.Object, append(at(template), "spec")...))
		return n, req, err
	}
}

// requirements is what one pod of a spec asks for. A limit is a request where
// there is none: servers fill in so for pods, but not for templates of kinds
// that they do not know.
func requirements(namespace string, podSpec map[string]any) (*needed, error) {
	filled := maps.Clone(podSpec)
	for _, field := range []string{"containers", "initContainers"} {
		given := rules.List(podSpec, field)
		if given == nil {
			continue
		}
		list := slices.Clone(given)
		for i := range list {
			if c, ok := list[i].(map[string]any); ok {
				list[i] = requesting(c)
			}
		}
		filled[field] = list
	}
	return rules.Requirements(namespace, filled)
}

// requesting returns a container that requests what it is limited to.
func requesting(container map[string]any) map[string]any {
	limits := rules.Object(container, "resources", "limits")
	if limits == nil {
		return container
	}
	requests := maps.Clone(limits)
	maps.Copy(requests, rules.Object(container, "resources", "requests"))
	resources := maps.Clone(rules.Object(container, "resources"))
	resources["requests"] = requests
	out := maps.Clone(container)
	out["resources"] = resources
	return out
}
