package words

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// Need is a rule for dependencies.
type Need = func(kinds.Object) ([]kinds.Dependency, error)

// Needs returns a rule for all that several rules find.
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

// Pods needs what pods of the specs at the paths need.
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

// PodOf is a pod spec that is put together from fields of an object: paths of
// Containers and of volumes.
type PodOf struct{ Containers, Volumes []string }

// PodsOf needs what a pod with these containers and volumes needs.
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

// Named needs resources of one kind by the names at the paths, in the
// Namespace of the object.
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

// Secrets needs secrets by name.
func Secrets(paths ...string) Need { return Named("v1", "Secret", paths...) }

// ConfigMaps needs config maps by name.
func ConfigMaps(paths ...string) Need { return Named("v1", "ConfigMap", paths...) }

// ServiceAccounts needs accounts by name; the default one is everywhere.
func ServiceAccounts(paths ...string) Need {
	return Except("default", Named("v1", "ServiceAccount", paths...))
}

// Except leaves out what has a name that stands for no resource, or for one
// that is always there.
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

// Refs needs what the objects at the paths refer to by name. Where one says no
// kind, namespace or version, it means the given ones and the object's own; the
// object's own version, too, if none is given.
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

// Scope returns the namespace of a resource that is looked for from one: none
// for kinds that say by their names that they belong to the cluster.
func Scope(kind, namespace string) string {
	if strings.HasPrefix(kind, "Cluster") {
		return ""
	}
	return namespace
}

// Within has a rule look from another namespace; from none, it finds nothing.
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

// Always returns an answer that is the same for all objects.
func Always(namespace string) func(kinds.Object) string {
	return func(kinds.Object) string { return namespace }
}

// TextAt returns a question for the text at a path.
func TextAt(path string) func(kinds.Object) string {
	return func(obj kinds.Object) string { return rules.Text(obj.Object, At(path)...) }
}
