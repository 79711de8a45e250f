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
	// Needed is what one replica requests, and which nodes it may run on.
	Needed = workv1alpha2.ReplicaRequirements
)

// mostName is how long the name of a component may be, in bytes.
const mostName = 32

// Roster collects components under distinct names.
type Roster struct {
	// Namespace is where the pods of the components run.
	Namespace string
	// Parts are the components so far.
	Parts Components
	// Err is why the first component that could not be added is missing; nil where
	// none is.
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

// Add adds a component, each of whose replicas needs need; nil means nothing. A
// number of replicas below zero or above what an int32 holds is an error of
// Result.
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

// Fail records why a component is missing. Only the first error is kept.
func (r *Roster) Fail(name string, err error) {
	if r.Err == nil {
		r.Err = fmt.Errorf("component %s: %w", name, err)
	}
}

// distinct returns name cut to mostName, with a number after it where another
// component has that name already.
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

// Result returns the components, and the first error.
func (r *Roster) Result() (Components, error) { return r.Parts, r.Err }

// CountOr returns the number at a path, or none where nothing is set there.
func CountOr(none int64, m map[string]any, path ...string) int64 {
	if rules.Value(m, path...) == nil {
		return none
	}
	return rules.Number(m, path...)
}

// Roles returns a rule for components that are the fields of the object at a
// path, by their names in lower case. Each has replicas, one where that is not
// set, and a pod template.
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

// Tasks returns a rule for components that are the entries of the list at a path.
// Each has a name and, at the path template below it, a pod template; count
// returns its replicas.
func Tasks(path, template string, count func(task map[string]any) int64) func(kinds.Object) (Components, error) {
	return func(obj kinds.Object) (Components, error) {
		r := Roster{Namespace: obj.GetNamespace()}
		for _, task := range rules.Objects(obj.Object, At(path)...) {
			r.Pods(rules.Text(task, "name"), count(task), rules.Object(task, append(At(template), "spec")...))
		}
		return r.Result()
	}
}

// Replicas returns a rule for kinds with the number of replicas at path, none
// where that is not set, and the pod template at template.
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

// Requirements returns what one pod of a spec requests. A limit counts as a
// request where there is no request: API servers set that for pods, but not for
// the pod templates of kinds that they do not know.
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

// requesting returns a copy of a container that requests what it is limited to,
// where it has no request of its own.
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

// Sidecars returns the containers of a pod spec but the one named main.
func Sidecars(podSpec map[string]any, main string) []any {
	out := []any{}
	for _, c := range rules.Objects(podSpec, "containers") {
		if rules.Text(c, "name") != main {
			out = append(out, c)
		}
	}
	return out
}

// Classed sets the priority class of a need, and makes a need where it is nil.
// With an empty class it returns need as it is.
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

// Plus adds resources to a need, and makes a need where it is nil. With no
// resources it returns need as it is.
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
