package words

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

type (
	// Components are the parts of a workload.
	Components = []workv1alpha2.Component
	// Needed is what one replica needs.
	Needed = workv1alpha2.ReplicaRequirements
)

// mostName is how long the name of a component may be.
const mostName = 32

// Roster collects components under distinct names.
type Roster struct {
	// Namespace is where their pods run.
	Namespace string
	// Parts are the components so far.
	Parts Components
	// Err is why one of them is missing; nil where none is.
	Err error
}

// Pods adds a component whose replicas are pods of a spec.
func (r *Roster) Pods(name string, replicas int64, podSpec map[string]any) {
	need, err := Requirements(r.Namespace, podSpec)
	if err != nil {
		r.Fail(name, err)
		return
	}
	r.Add(name, replicas, need)
}

// Add adds a component whose replicas need so much each; nil for nothing.
func (r *Roster) Add(name string, replicas int64, need *Needed) {
	if replicas < 0 || replicas > math.MaxInt32 {
		r.Fail(name, fmt.Errorf("%d is no number of replicas", replicas))
		return
	}
	part := workv1alpha2.Component{Name: r.distinct(name), Replicas: int32(replicas)}
	if need != nil {
		part.ReplicaRequirements = &workv1alpha2.ComponentReplicaRequirements{
			NodeClaim: need.NodeClaim, ResourceRequest: need.ResourceRequest, PriorityClassName: need.PriorityClassName,
		}
	}
	r.Parts = append(r.Parts, part)
}

// Fail notes why there is no such component; the first fault counts.
func (r *Roster) Fail(name string, err error) {
	if r.Err == nil {
		r.Err = fmt.Errorf("component %s: %w", name, err)
	}
}

// distinct returns a name that fits and that no component has yet.
func (r *Roster) distinct(name string) string {
	taken := func(name string) bool {
		return slices.ContainsFunc(r.Parts, func(c workv1alpha2.Component) bool { return c.Name == name })
	}
	short := name[:min(len(name), mostName)]
	for i := 2; taken(short) || short == ""; i++ {
		suffix := fmt.Sprintf("-%d", i)
		short = name[:min(len(name), mostName-len(suffix))] + suffix
	}
	return short
}

// Result returns the components, and the first fault.
func (r *Roster) Result() (Components, error) { return r.Parts, r.Err }

// CountOr returns the number at a path, or another where there is none.
func CountOr(none int64, m map[string]any, path ...string) int64 {
	if rules.Value(m, path...) == nil {
		return none
	}
	return rules.Number(m, path...)
}

// Roles are components by the names of an object's fields, each with replicas,
// one if it does not say, and a pod template.
func Roles(path string) func(kinds.Object) (Components, error) {
	return func(obj kinds.Object) (Components, error) {
		r := Roster{Namespace: obj.GetNamespace()}
		all := rules.Object(obj.Object, At(path)...)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			role := rules.Object(all, name)
			r.Pods(strings.ToLower(name), CountOr(1, role, "replicas"), rules.Object(role, "template", "spec"))
		}
		return r.Result()
	}
}

// Tasks are components by the entries of a list, each with a name and a pod
// template, and as many replicas as a rule says.
func Tasks(path, template string, count func(task map[string]any) int64) func(kinds.Object) (Components, error) {
	return func(obj kinds.Object) (Components, error) {
		r := Roster{Namespace: obj.GetNamespace()}
		for _, task := range rules.Objects(obj.Object, At(path)...) {
			r.Pods(rules.Text(task, "name"), count(task), rules.Object(task, append(At(template), "spec")...))
		}
		return r.Result()
	}
}

// Replicas counts at a path, or as many where it says nothing, each made from a
// pod template.
func Replicas(path string, none int32, template string) func(kinds.Object) (int32, *Needed, error) {
	return func(obj kinds.Object) (int32, *Needed, error) {
		n, err := rules.Count(obj.Object, At(path)...)
		if err != nil {
			return 0, nil, err
		}
		if rules.Value(obj.Object, At(path)...) == nil {
			n = none
		}
		req, err := Requirements(obj.GetNamespace(), rules.Object(obj.Object, append(At(template), "spec")...))
		return n, req, err
	}
}

// Requirements is what one pod of a spec asks for. A limit is a request where
// There is none: servers fill in so for pods, but not for templates of kinds
// that they do not know.
func Requirements(namespace string, podSpec map[string]any) (*Needed, error) {
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

// Sidecars returns the containers of a pod spec but the one of a name.
func Sidecars(podSpec map[string]any, main string) []any {
	out := []any{}
	for _, c := range rules.Objects(podSpec, "containers") {
		if rules.Text(c, "name") != main {
			out = append(out, c)
		}
	}
	return out
}

// Classed adds the priority class of pods to a need; nil for nothing at all.
func Classed(namespace string, need *Needed, class string) *Needed {
	if class == "" {
		return need
	}
	if need == nil {
		need = &Needed{Namespace: namespace}
	}
	need.PriorityClassName = class
	return need
}

// Plus adds resources to a need; nil for nothing at all.
func Plus(namespace string, need *Needed, more corev1.ResourceList) *Needed {
	if len(more) == 0 {
		return need
	}
	if need == nil {
		need = &Needed{Namespace: namespace}
	}
	if need.ResourceRequest == nil {
		need.ResourceRequest = corev1.ResourceList{}
	}
	for name, q := range more {
		sum := need.ResourceRequest[name]
		sum.Add(q)
		need.ResourceRequest[name] = sum
	}
	return need
}
