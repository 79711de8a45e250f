package replicas

import (
	"slices"
	"strings"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Within returns what of a placement takes no more in all than the one before: what goes on keeps what it has, and what is new gets what
// those had that are left, as far as that goes; by a placement that has each cluster run all replicas, or a whole set, all of it
// or nothing. Nil where that is nothing, or would not be what the placement asks for.
func Within(p *policyv1alpha1.Placement, was, is []workv1alpha2.TargetCluster) []workv1alpha2.TargetCluster {
	var out, fresh []workv1alpha2.TargetCluster
	freed, fewest := slices.Clone(was), 0
	for _, t := range is {
		at := slices.IndexFunc(freed, func(f workv1alpha2.TargetCluster) bool { return f.Name == t.Name })
		if at < 0 {
			fresh = append(fresh, t)
			continue
		}
		out, freed = append(out, freed[at]), slices.Delete(freed, at, at+1)
	}
	var strategy *policyv1alpha1.ReplicaSchedulingStrategy
	if p != nil {
		strategy = p.ReplicaScheduling
		for _, c := range p.SpreadConstraints {
			if c.SpreadByLabel != "" || c.SpreadByField != "" && c.SpreadByField != policyv1alpha1.SpreadByFieldCluster {
				return nil
			}
			fewest = max(fewest, c.MinGroups)
		}
	}
	if out = append(out, handOn(freed, fresh, Duplicates(strategy))...); len(out) < fewest {
		return nil
	}
	slices.SortFunc(out, func(a, b workv1alpha2.TargetCluster) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// handOn gives fresh what was freed: whole says one for one.
func handOn(freed, fresh []workv1alpha2.TargetCluster, whole bool) []workv1alpha2.TargetCluster {
	var out []workv1alpha2.TargetCluster
	var left int32
	for _, t := range freed {
		left += t.Replicas
	}
	for i, t := range fresh {
		if whole || left == 0 && t.Replicas == 0 {
			if i >= len(freed) {
				break
			}
			out = append(out, workv1alpha2.TargetCluster{Name: t.Name, Replicas: min(t.Replicas, freed[i].Replicas), Components: t.Components})
			continue
		}
		if t.Replicas = min(t.Replicas, left); t.Replicas > 0 {
			out, left = append(out, t), left-t.Replicas
		}
	}
	return out
}
