package lineage

import (
	"encoding/json"
	"slices"
	"strings"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/override"
)

// OverridesOf returns the policies that changed manifests, according to annotations of the Works.
func OverridesOf(b workv1alpha2.Binding, works []*workv1alpha1.Work) []Override {
	found := map[Object][]string{}
	for _, w := range works {
		cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
		if !ok {
			continue
		}
		for _, kind := range []struct{ annotation, kind, namespace string }{
			{policyv1alpha1.AppliedClusterOverrides, "ClusterOverridePolicy", ""},
			{policyv1alpha1.AppliedOverrides, "OverridePolicy", b.GetNamespace()},
		} {
			var items []override.Item
			if json.Unmarshal([]byte(w.Annotations[kind.annotation]), &items) != nil {
				continue // none, or what somebody else wrote there
			}
			for _, item := range items {
				o := Object{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: kind.kind, Namespace: kind.namespace, Name: item.PolicyName}
				if !slices.Contains(found[o], cluster) {
					found[o] = append(found[o], cluster)
				}
			}
		}
	}
	var out []Override
	for o, clusters := range found {
		slices.Sort(clusters)
		out = append(out, Override{Object: o, Clusters: clusters})
	}
	slices.SortFunc(out, func(a, b Override) int { return strings.Compare(a.String(), b.String()) })
	return out
}
