package volumes

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Found are the claims that stay in clusters with their data, by cluster: what asks for one there takes it over as it is. Nil is what is
// not known.
type Found map[string][]types.NamespacedName

// Add adds what a cluster reports.
func (f Found) Add(c *clusterv1alpha1.Cluster) {
	if claims := StayingIn(c); len(claims) > 0 {
		f[c.Name] = claims
	}
}

// In returns those of some clusters.
func (f Found) In(clusters []string) Found {
	out := maps.Clone(f)
	maps.DeleteFunc(out, func(cluster string, _ []types.NamespacedName) bool { return !slices.Contains(clusters, cluster) })
	return out
}

// again says which claims of a template are there, and that it goes on with them: "west still has data-db-0, and it goes on with that";
// empty where none is known of.
func (f Found) again(template *unstructured.Unstructured) string {
	var parts []string
	count := 0
	for _, cluster := range slices.Sorted(maps.Keys(f)) {
		var names []string
		for _, claim := range f[cluster] {
			if claim.Namespace == template.GetNamespace() && uses(template, claim.Name) {
				names = append(names, claim.Name)
			}
		}
		if count += len(names); len(names) > 0 {
			parts = append(parts, cluster+" still has "+strings.Join(names, ", "))
		}
	}
	switch text := strings.Join(parts, ", and "); {
	case text == "":
		return ""
	case isClaim(template):
		return text + ", which is used again"
	case count == 1:
		return text + ", and it goes on with that"
	default:
		return text + ", and it goes on with those"
	}
}

// uses reports whether a template is a claim of that name, makes it, or mounts it.
func uses(template *unstructured.Unstructured, claim string) bool {
	if isClaim(template) {
		return template.GetName() == claim
	}
	made := MakesClaims(template.GroupVersionKind().GroupKind()) && slices.ContainsFunc(madeNames(template), func(name string) bool { return isReplica(claim, name) })
	return made || slices.Contains(mounted(template), claim)
}
