package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

// names returns the candidates with no replicas, sorted by name.
func names(chosen []framework.Candidate) []workv1alpha2.TargetCluster {
	out := make([]workv1alpha2.TargetCluster, len(chosen))
	for i := range chosen {
		out[i] = workv1alpha2.TargetCluster{Name: chosen[i].Name}
	}
	slices.SortFunc(out, byName)
	return out
}

// withEmpty returns all, with what got says about those that it has. Both are
// sorted by name.
func withEmpty(got, all []workv1alpha2.TargetCluster) []workv1alpha2.TargetCluster {
	for i := range all {
		if at, ok := slices.BinarySearchFunc(got, all[i], byName); ok {
			all[i] = got[at]
		}
	}
	return all
}

func byName(a, b workv1alpha2.TargetCluster) int { return cmp.Compare(a.Name, b.Name) }

// Text returns the placement as events and explanations show it:
// "{m1:2, m2:1}".
func Text(clusters []workv1alpha2.TargetCluster) string {
	parts := make([]string, len(clusters))
	for i, t := range clusters {
		parts[i] = fmt.Sprintf("%s:%d", t.Name, t.Replicas)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
