package words

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// Need is a rule that finds the dependencies of an object.
type Need = func(kinds.Object) ([]kinds.Dependency, error)

// Needs returns a rule that finds all that the given rules find.
func Needs(all ...Need) Need {
	return func(obj kinds.Object) ([]kinds.Dependency, error) {
		lists := make([][]kinds.Dependency, len(all))
		for i, n := range all {
			found, err := n(obj)
			if err != nil {
				return nil, err
			}
			lists[i] = found
		}
		return rules.Union(lists...), nil
	}
}

// Pods returns a rule that finds what pods of the specs at the paths need.
func Pods(paths ...string) Need {
	return func(obj kinds.Object) ([]kinds.Dependency, error) {
		var lists [][]kinds.Dependency
		for _, path := range paths {
			for _, spec := range Objects(obj.Object, path) {
				found, err := rules.PodDependencies(obj.GetNamespace(), spec)
				if err != nil {
					return nil, err
				}
				lists = append(lists, found)
			}
		}
		return rules.Union(lists...), nil
	}
}

// PodOf is a pod spec whose containers and volumes are at various paths of an
// object.
type PodOf struct{ Containers, Volumes []string }

// PodsOf returns a rule that finds what a pod with these containers and volumes
// needs.
func PodsOf(parts PodOf) Need {
	return func(obj kinds.Object) ([]kinds.Dependency, error) {
		return rules.PodDependencies(obj.GetNamespace(), map[string]any{
			"containers": join(obj, parts.Containers), "volumes": join(obj, parts.Volumes),
		})
	}
}

func join(obj kinds.Object, paths []string) []any {
	out := []any{}
	for _, path := range paths {
		for _, o := range Objects(obj.Object, path) {
			out = append(out, o)
		}
	}
	return out
}

// Named returns a rule that finds resources of one kind by the names at the
// paths, in the namespace of the object.
func Named(apiVersion, kind string, paths ...string) Need {
	return func(obj kinds.Object) ([]kinds.Dependency, error) {
		found := rules.Needs{Namespace: Scope(kind, obj.GetNamespace())}
		for _, path := range paths {
			for _, v := range Find(obj.Object, path) {
				name, _ := v.(string)
				found.AddOf(apiVersion, kind, name)
			}
		}
		return found.Sorted(), nil
	}
}

// Secrets returns a rule that finds secrets by the names at the paths.
func Secrets(paths ...string) Need { return Named("v1", "Secret", paths...) }

// ConfigMaps returns a rule that finds config maps by the names at the paths.
func ConfigMaps(paths ...string) Need { return Named("v1", "ConfigMap", paths...) }

// ServiceAccounts returns a rule that finds service accounts by the names at the
// paths, but for the default one, which every namespace has.
func ServiceAccounts(paths ...string) Need {
	return Except("default", Named("v1", "ServiceAccount", paths...))
}

// Except wraps a rule to leave out resources of one name: a name that stands for
// no resource, or for one that is always there.
func Except(name string, n Need) Need {
	return func(obj kinds.Object) ([]kinds.Dependency, error) {
		found, err := n(obj)
		var out []kinds.Dependency
		for _, d := range found {
			if d.Name != name {
				out = append(out, d)
			}
		}
		return out, err
	}
}

// Refs returns a rule that finds what the references at the paths name. A
// reference without an apiVersion or kind means the given one, and one without a
// namespace that of the object. An empty apiVersion stands for the object's own.
func Refs(apiVersion, kind string, paths ...string) Need {
	return func(obj kinds.Object) ([]kinds.Dependency, error) {
		var found []kinds.Dependency
		for _, path := range paths {
			for _, ref := range Objects(obj.Object, path) {
				d := kinds.Dependency{APIVersion: apiVersion, Kind: kind, Namespace: obj.GetNamespace(), Name: rules.Text(ref, "name")}
				if apiVersion == "" {
					d.APIVersion = obj.GetAPIVersion()
				}
				override(&d.APIVersion, ref, "apiVersion")
				override(&d.Kind, ref, "kind")
				override(&d.Namespace, ref, "namespace")
				if d.Namespace = Scope(d.Kind, d.Namespace); d.Name != "" {
					found = append(found, d)
				}
			}
		}
		return rules.Union(found), nil
	}
}

func override(field *string, ref map[string]any, name string) {
	if v := rules.Text(ref, name); v != "" {
		*field = v
	}
}

// Scope returns the namespace of a resource that an object in namespace refers
// to; none for kinds whose names begin with Cluster, which are cluster-scoped.
func Scope(kind, namespace string) string {
	if strings.HasPrefix(kind, "Cluster") {
		return ""
	}
	return namespace
}

// Within wraps a rule to find what the object would need if it were in another
// namespace, which namespace returns; nothing where that is empty.
func Within(namespace func(kinds.Object) string, n Need) Need {
	return func(obj kinds.Object) ([]kinds.Dependency, error) {
		ns := namespace(obj)
		if ns == "" {
			return nil, nil
		}
		moved := &unstructured.Unstructured{Object: maps.Clone(obj.Object)}
		moved.Object["metadata"] = map[string]any{"name": obj.GetName(), "namespace": ns}
		return n(moved)
	}
}

// Always returns a function for Within that returns the same namespace for all
// objects.
func Always(namespace string) func(kinds.Object) string {
	return func(kinds.Object) string { return namespace }
}

// TextAt returns a function for Within that returns the text at a path.
func TextAt(path string) func(kinds.Object) string {
	return func(obj kinds.Object) string { return rules.Text(obj.Object, At(path)...) }
}
