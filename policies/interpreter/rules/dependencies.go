package rules

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// PodTemplateDependencies returns a rule that finds what pods made from the
// template at the path cannot run without.
func PodTemplateDependencies(path ...string) func(kinds.Object) ([]kinds.Dependency, error) {
	return PodSpecDependencies(append(slices.Clone(path), "spec")...)
}

// PodSpecDependencies returns a rule that finds what a pod of the spec at the
// path cannot run without.
func PodSpecDependencies(path ...string) func(kinds.Object) ([]kinds.Dependency, error) {
	return func(obj kinds.Object) ([]kinds.Dependency, error) {
		return PodDependencies(obj.GetNamespace(), Object(obj.Object, path...))
	}
}

// PodDependencies returns what a pod of the spec cannot run without in the
// namespace, sorted, each once.
func PodDependencies(namespace string, podSpec map[string]any) ([]kinds.Dependency, error) {
	spec, err := Typed[corev1.PodSpec](podSpec)
	if err != nil {
		return nil, fmt.Errorf("pod spec: %w", err)
	}
	needs := Needs{Namespace: namespace}
	needs.podSpec(spec)
	return needs.Sorted(), nil
}

// Needs collects the dependencies of an object. The zero value is for
// dependencies without a namespace.
type Needs struct {
	// Namespace of the dependencies that are added.
	Namespace string
	found     []kinds.Dependency
}

// Add adds a resource of the core group; with an empty name, it adds nothing.
func (n *Needs) Add(kind, name string) { n.AddOf("v1", kind, name) }

// AddOf adds a resource of any group; with an empty name, it adds nothing.
func (n *Needs) AddOf(apiVersion, kind, name string) {
	if name != "" {
		n.found = append(n.found, kinds.Dependency{APIVersion: apiVersion, Kind: kind, Namespace: n.Namespace, Name: name})
	}
}

// Sorted returns the dependencies that were added, sorted, each once.
func (n *Needs) Sorted() []kinds.Dependency { return Union(n.found) }

// Union returns the dependencies of all lists, sorted, each once; nil for none.
func Union(lists ...[]kinds.Dependency) []kinds.Dependency {
	all := slices.Concat(lists...)
	slices.SortFunc(all, compare)
	return slices.CompactFunc(all, func(a, b kinds.Dependency) bool { return compare(a, b) == 0 })
}

func compare(a, b kinds.Dependency) int {
	return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name), cmp.Compare(selector(a), selector(b)))
}

func selector(d kinds.Dependency) string { return metav1.FormatLabelSelector(d.LabelSelector) }
