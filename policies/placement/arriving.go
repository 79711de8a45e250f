package placement

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// definitionKind is what kinds are defined by.
const definitionKind = "CustomResourceDefinition"

// Definition returns the name of the binding that carries the CustomResourceDefinition of a
// resource to clusters, and false for resources without one.
func Definition(r schema.GroupResource) (string, bool) {
	if !strings.Contains(r.Group, ".") {
		return "", false
	}
	return workv1alpha2.BindingName(definitionKind, r.String()), true
}

// Defines reports whether b carries a definition to clusters, and returns the
// group of the kind that it defines.
func Defines(b workv1alpha2.Binding) (group string, ok bool) {
	ref := &b.BindingSpec().Resource
	if ref.Kind != definitionKind || !strings.HasPrefix(ref.APIVersion, "apiextensions.k8s.io/") {
		return "", false
	}
	_, group, ok = strings.Cut(ref.Name, ".")
	return group, ok
}

// Arriving returns the snapshot in which the clusters that definition goes to
// serve the kind of the resource, although they do not report it yet: an object
// and its definition are most often made together, and the first cluster that
// reports the kind would get all of it. A nil definition changes nothing.
func (s Snapshot) Arriving(definition workv1alpha2.Binding, resource *workv1alpha2.ObjectReference) Snapshot {
	if definition == nil || definition.GetDeletionTimestamp() != nil {
		return s
	}
	if _, ok := Defines(definition); !ok {
		return s
	}
	out := s
	for _, name := range destinations(definition.BindingSpec()) {
		i, ok := slices.BinarySearchFunc(s.clusters, name, nameCompare)
		if !ok || s.clusters[i].API(resource.APIVersion, resource.Kind) == clusterv1alpha1.APIEnabled {
			continue
		}
		if &out.clusters[0] == &s.clusters[0] {
			out.clusters = slices.Clone(s.clusters)
		}
		cluster := *s.clusters[i]
		cluster.Arriving = schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind)
		out.clusters[i] = &cluster
	}
	return out
}

// destinations are the clusters that a binding carries its template to.
func destinations(spec *workv1alpha2.ResourceBindingSpec) []string {
	var out []string
	add := func(targets []workv1alpha2.TargetCluster) {
		for _, t := range targets {
			out = append(out, t.Name)
		}
	}
	add(spec.Clusters)
	for i := range spec.RequiredBy {
		add(spec.RequiredBy[i].Clusters)
	}
	return out
}
