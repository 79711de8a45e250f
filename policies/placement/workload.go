package placement

import (
	"slices"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

// IsWorkload reports whether the binding has replicas to place.
func IsWorkload(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Replicas > 0 || spec.ReplicaRequirements != nil || len(spec.Components) > 0
}

// InSets reports whether the binding's replicas are those of components, which are
// not divided: each cluster runs a whole set of them.
func InSets(spec *workv1alpha2.ResourceBindingSpec) bool {
	return len(spec.Components) > 1 || len(spec.Components) == 1 && spec.Replicas == 0
}

// amountOf returns how many units must find capacity somewhere: replicas, or one set
// of components.
func amountOf(spec *workv1alpha2.ResourceBindingSpec) int64 {
	if InSets(spec) {
		return 1
	}
	return max(int64(spec.Replicas), 0)
}

// Units returns how much of the workload t runs: replicas, or the one set of
// all components; zero for resources that take no capacity.
func Units(spec *workv1alpha2.ResourceBindingSpec, t workv1alpha2.TargetCluster) int32 {
	if InSets(spec) {
		return 1
	}
	return t.Replicas
}

// LoadOf returns what that many units of the workload take of a cluster.
func LoadOf(spec *workv1alpha2.ResourceBindingSpec, units int32) estimate.Load {
	if InSets(spec) {
		return estimate.LoadOfSet(spec.Components).Times(units)
	}
	return estimate.LoadOf(units, spec.ReplicaRequirements)
}

// NeedOf returns what one unit of the workload asks for.
func NeedOf(spec *workv1alpha2.ResourceBindingSpec) estimate.Need {
	if InSets(spec) {
		return estimate.NeedOfSet(spec.Components)
	}
	return estimate.NeedOf(spec.ReplicaRequirements)
}

// sets gives every chosen cluster a whole set. Where the placement wants one
// cluster, the components are listed; the list is what makes it known how many
// replicas of each run there.
func (a *attempt) sets(chosen []framework.Candidate) []workv1alpha2.TargetCluster {
	out := names(chosen)
	if !a.opts.NoComponents && onOneCluster(a.placement) {
		for i := range out {
			out[i].Components = wholeSet(a.req.Spec)
		}
	}
	if a.trace != nil {
		a.trace.divided(out, nil, "every cluster runs one set of all components")
	}
	return out
}

func wholeSet(spec *workv1alpha2.ResourceBindingSpec) []workv1alpha2.TargetComponent {
	out := make([]workv1alpha2.TargetComponent, len(spec.Components))
	for i := range spec.Components {
		out[i] = workv1alpha2.TargetComponent{Name: spec.Components[i].Name, Replicas: spec.Components[i].Replicas}
	}
	return out
}

// onOneCluster reports whether the placement wants exactly one cluster.
func onOneCluster(p *policyv1alpha1.Placement) bool {
	return slices.ContainsFunc(p.SpreadConstraints, func(c policyv1alpha1.SpreadConstraint) bool {
		by, err := framework.GroupingOf(&c)
		return err == nil && by.Field == policyv1alpha1.SpreadByFieldCluster && c.MinGroups == 1 && c.MaxGroups == 1
	})
}

// setChanged reports whether a cluster lists other components than there are.
func setChanged(spec *workv1alpha2.ResourceBindingSpec) bool {
	set := wholeSet(spec)
	return slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool {
		return len(t.Components) > 0 && !slices.Equal(t.Components, set)
	})
}
