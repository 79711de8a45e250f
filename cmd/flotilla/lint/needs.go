package lint

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/native"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// needs reports objects in these files that workloads in them need and that no policy propagates:
// in the clusters, their Pods would wait for them.
func needs(l *linter, policies []policyv1alpha1.Policy, templates []template) {
	rules := native.Table()
	along := map[client.ObjectKey]bool{} // claims that are propagated with their workloads
	for _, o := range all(l) {
		obj := &unstructured.Unstructured{Object: o.doc.Fields}
		of := rules[o.gvk].Dependencies
		by := carriers(l, policies, selector.ResourceOf(obj))
		if of == nil || len(by) == 0 || o.patch {
			continue
		}
		brings := slices.ContainsFunc(by, func(p policyv1alpha1.Policy) bool { return p.PropagationSpec().PropagateDeps })
		needed, err := of(obj)
		if err != nil {
			continue // the check of the schema reports that
		}
		for _, n := range needed {
			at := find(templates, n)
			switch {
			case at < 0 || len(carriers(l, policies, templates[at].Resource)) > 0:
			case brings && n.Kind == claimKind.Kind:
				along[client.ObjectKey{Namespace: n.Namespace, Name: n.Name}] = true
			case brings:
			default:
				l.add(o, Warning, "", fmt.Sprintf("needs the %s %s, which no policy of these files carries to clusters: set propagateDeps: true in the policy %s, or select it, too",
					n.Kind, n.Name, by[0].GetName()))
			}
		}
	}
	storage(l, policies, templates, along)
}

// find returns the index of a template; negative if it is not in these files.
func find(templates []template, n kinds.Dependency) int {
	return slices.IndexFunc(templates, func(t template) bool {
		return n.Name != "" && t.Name == n.Name && t.Kind == n.Kind && t.APIVersion == n.APIVersion && t.Namespace == n.Namespace
	})
}

// keeps warns about workloads whose claims would stay in clusters although they ask to have them deleted.
func keeps(l *linter, policies []policyv1alpha1.Policy) {
	for _, o := range all(l) {
		obj := &unstructured.Unstructured{Object: o.doc.Fields}
		if len(volumes.Drops(obj)) == 0 || volumes.Named(obj) || len(carriers(l, policies, selector.ResourceOf(obj))) == 0 {
			continue
		}
		l.add(o, Warning, "spec.persistentVolumeClaimRetentionPolicy", fmt.Sprintf("Delete is Retain in clusters, so that a move takes no data: claims stay there. "+
			"Annotate it with %s: \"true\" to have them go with it, moved or not", workv1alpha2.AllowCascadeAnnotation))
	}
}

// carriers returns the policies that select an object.
func carriers(l *linter, policies []policyv1alpha1.Policy, r selector.Resource) []policyv1alpha1.Policy {
	return slices.DeleteFunc(slices.Clone(policies), func(p policyv1alpha1.Policy) bool { return r.Name == "" || !l.selects(p, r) })
}
