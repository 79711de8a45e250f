package customizations

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// need is a rule for dependencies.
type need = func(kinds.Object) ([]kinds.Dependency, error)

// needs returns a rule for all that several rules find.
func needs(all ...need) need {
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

// pods needs what pods of the specs at the paths need.
func pods(paths ...string) need {
	return func(obj kinds.Object) ([]kinds.Dependency, error) {
		var lists [][]kinds.Dependency
		for _, path := range paths {
			for _, spec := range objects(obj.Object, path) {
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

// podOf is a pod spec that is put together from fields of an object: paths of
// containers and of volumes.
type podOf struct{ containers, volumes []string }

// podsOf needs what a pod with these containers and volumes needs.
func podsOf(parts podOf) need {
	return func(obj kinds.Object) ([]kinds.Dependency, error) {
		return rules.PodDependencies(obj.GetNamespace(), map[string]any{
			"containers": join(obj, parts.containers), "volumes": join(obj, parts.volumes),
		})
	}
}

func join(obj kinds.Object, paths []string) []any {
	out := []any{}
	for _, path := range paths {
		for _, o := range objects(obj.Object, path) {
			out = append(out, o)
		}
	}
	return out
}

// named needs resources of one kind by the names at the paths, in the
// namespace of the object.
func named(apiVersion, kind string, paths ...string) need {
	return func(obj kinds.Object) ([]kinds.Dependency, error) {
		found := rules.Needs{Namespace: scope(kind, obj.GetNamespace())}
		for _, path := range paths {
			for _, v := range find(obj.Object, path) {
				name, _ := v.(string)
				found.AddOf(apiVersion, kind, name)
			}
		}
		return found.Sorted(), nil
	}
}

func secrets(paths ...string) need    { return named("v1", "Secret", paths...) }
func configMaps(paths ...string) need { return named("v1", "ConfigMap", paths...) }

// serviceAccounts needs accounts by name; the default one is everywhere.
func serviceAccounts(paths ...string) need {
	return except("default", named("v1", "ServiceAccount", paths...))
}

// except leaves out what has a name that stands for no resource, or for one
// that is always there.
func except(name string, n need) need {
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

// refs needs what the objects at the paths refer to by name. Where one says no
// kind, namespace or version, it means the given ones and the object's own; the
// object's own version, too, if none is given.
func refs(apiVersion, kind string, paths ...string) need {
	return func(obj kinds.Object) ([]kinds.Dependency, error) {
		var found []kinds.Dependency
		for _, path := range paths {
			for _, ref := range objects(obj.Object, path) {
				d := kinds.Dependency{APIVersion: apiVersion, Kind: kind, Namespace: obj.GetNamespace(), Name: rules.Text(ref, "name")}
				if apiVersion == "" {
					d.APIVersion = obj.GetAPIVersion()
				}
				override(&d.APIVersion, ref, "apiVersion")
				override(&d.Kind, ref, "kind")
				override(&d.Namespace, ref, "namespace")
				if d.Namespace = scope(d.Kind, d.Namespace); d.Name != "" {
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

// scope returns the namespace of a resource that is looked for from one: none
// for kinds that say by their names that they belong to the cluster.
func scope(kind, namespace string) string {
	if strings.HasPrefix(kind, "Cluster") {
		return ""
	}
	return namespace
}

// within has a rule look from another namespace; from none, it finds nothing.
func within(namespace func(kinds.Object) string, n need) need {
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

func always(namespace string) func(kinds.Object) string {
	return func(kinds.Object) string { return namespace }
}

// textAt returns a question for the text at a path.
func textAt(path string) func(kinds.Object) string {
	return func(obj kinds.Object) string { return rules.Text(obj.Object, at(path)...) }
}
