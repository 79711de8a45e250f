package validate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/policies/validate/syntax"
)

func placement(p *policyv1alpha1.Placement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.ClusterAffinity != nil && len(p.ClusterAffinities) > 0 {
		errs = append(errs, field.Invalid(path, "clusterAffinity and clusterAffinities",
			"clusterAffinities can not co-exist with clusterAffinity"))
	}
	errs = append(errs, affinity(p.ClusterAffinity, path.Child("clusterAffinity"))...)
	errs = append(errs, affinityTerms(p, path.Child("clusterAffinities"))...)
	for i, t := range p.ClusterTolerations {
		errs = append(errs, toleration(t, path.Child("clusterTolerations").Index(i))...)
	}
	errs = append(errs, spread(p.SpreadConstraints, path.Child("spreadConstraints"))...)
	errs = append(errs, strategy(p.ReplicaScheduling, path.Child("replicaScheduling"))...)
	return append(errs, workloadAffinity(p.WorkloadAffinity, path.Child("workloadAffinity"))...)
}

func affinity(a *policyv1alpha1.ClusterAffinity, path *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	errs := syntax.LabelSelector(a.LabelSelector, path.Child("labelSelector"))
	if a.FieldSelector == nil {
		return errs
	}
	for i, e := range a.FieldSelector.MatchExpressions {
		at := path.Child("fieldSelector", "matchExpressions").Index(i)
		if !slices.Contains([]string{selector.FieldProvider, selector.FieldRegion, selector.FieldZone}, e.Key) {
			errs = append(errs, field.NotSupported(at.Child("key"), e.Key,
				[]string{selector.FieldProvider, selector.FieldRegion, selector.FieldZone}))
		}
		if e.Operator != corev1.NodeSelectorOpIn && e.Operator != corev1.NodeSelectorOpNotIn {
			errs = append(errs, field.NotSupported(at.Child("operator"), e.Operator,
				[]corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn}))
		}
	}
	return errs
}

func affinityTerms(p *policyv1alpha1.Placement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i := range p.ClusterAffinities {
		t, at := &p.ClusterAffinities[i], path.Index(i)
		errs = append(errs, syntax.LabelName(t.AffinityName, at.Child("affinityName"))...)
		if names[t.AffinityName] {
			errs = append(errs, field.Duplicate(at.Child("affinityName"), t.AffinityName))
		}
		names[t.AffinityName] = true
		errs = append(errs, affinity(&t.ClusterAffinity, at)...)
		errs = append(errs, overflow(p, t, at.Child("overflowAffinities"))...)
	}
	return errs
}

func overflow(p *policyv1alpha1.Placement, t *policyv1alpha1.ClusterAffinityTerm, path *field.Path) field.ErrorList {
	if len(t.OverflowAffinities) == 0 {
		return nil
	}
	var errs field.ErrorList
	if replicas.Duplicates(p.ReplicaScheduling) || replicas.Static(p.ReplicaScheduling) {
		errs = append(errs, field.Forbidden(path,
			"overflowAffinities are only for replicas that are Divided, either Aggregated or by dynamic weight"))
	}
	a := &t.ClusterAffinity
	if a.LabelSelector == nil && a.FieldSelector == nil && len(a.ClusterNames) == 0 && len(a.ExcludeClusters) == 0 {
		errs = append(errs, field.Forbidden(path, "overflowAffinities need an affinity that is not empty before them"))
	}
	names := map[string]bool{t.AffinityName: true}
	for i := range t.OverflowAffinities {
		o, at := &t.OverflowAffinities[i], path.Index(i)
		errs = append(errs, syntax.LabelName(o.AffinityName, at.Child("affinityName"))...)
		if names[o.AffinityName] {
			errs = append(errs, field.Duplicate(at.Child("affinityName"), o.AffinityName))
		}
		names[o.AffinityName] = true
		errs = append(errs, affinity(&o.ClusterAffinity, at)...)
	}
	return errs
}

func toleration(t corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch t.Operator {
	case "", corev1.TolerationOpEqual:
		if t.Key == "" {
			errs = append(errs, field.Invalid(path.Child("operator"), t.Operator, "operator must be Exists when key is empty"))
		}
	case corev1.TolerationOpExists:
		if t.Value != "" {
			errs = append(errs, field.Invalid(path.Child("value"), t.Value, "value must be empty when operator is Exists"))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("operator"), t.Operator,
			[]corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
	}
	if t.Key != "" {
		errs = append(errs, syntax.LabelName(t.Key, path.Child("key"))...)
	}
	return errs
}

func spread(cs []policyv1alpha1.SpreadConstraint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	fields := map[policyv1alpha1.SpreadFieldValue]bool{}
	for i, c := range cs {
		at := path.Index(i)
		if c.SpreadByField != "" && c.SpreadByLabel != "" {
			errs = append(errs, field.Invalid(at, c.SpreadByLabel, "spreadByLabel should not co-exist with spreadByField"))
		}
		if c.MinGroups < 0 {
			errs = append(errs, field.Invalid(at.Child("minGroups"), c.MinGroups, "minGroups lower than 0 is not allowed"))
		}
		if c.MaxGroups < 0 {
			errs = append(errs, field.Invalid(at.Child("maxGroups"), c.MaxGroups, "maxGroups lower than 0 is not allowed"))
		}
		if c.MaxGroups > 0 && c.MaxGroups < c.MinGroups {
			errs = append(errs, field.Invalid(at.Child("maxGroups"), c.MaxGroups,
				fmt.Sprintf("maxGroups lower than minGroups (%d) is not allowed", c.MinGroups)))
		}
		if c.SpreadByField == "" {
			continue
		}
		if fields[c.SpreadByField] {
			errs = append(errs, field.Duplicate(at.Child("spreadByField"), c.SpreadByField))
		}
		fields[c.SpreadByField] = true
	}
	if len(fields) > 0 && !fields[policyv1alpha1.SpreadByFieldCluster] {
		errs = append(errs, field.Required(path, "the cluster spread constraint must be enabled in one of the constraints in case of spreadByField is enabled"))
	}
	return errs
}

func strategy(s *policyv1alpha1.ReplicaSchedulingStrategy, path *field.Path) field.ErrorList {
	if s == nil || s.WeightPreference == nil {
		return nil
	}
	var errs field.ErrorList
	for i := range s.WeightPreference.StaticWeightList {
		rule, at := &s.WeightPreference.StaticWeightList[i], path.Child("weightPreference", "staticWeightList").Index(i)
		errs = append(errs, affinity(&rule.TargetCluster, at.Child("targetCluster"))...)
		if rule.Weight < 1 {
			errs = append(errs, field.Invalid(at.Child("weight"), rule.Weight, "must be greater than or equal to 1"))
		}
	}
	return errs
}

func workloadAffinity(w *policyv1alpha1.WorkloadAffinity, path *field.Path) field.ErrorList {
	if w == nil {
		return nil
	}
	var errs field.ErrorList
	if w.Affinity != nil {
		errs = append(errs, syntax.LabelName(w.Affinity.GroupByLabelKey, path.Child("affinity", "groupByLabelKey"))...)
	}
	if w.AntiAffinity != nil {
		errs = append(errs, syntax.LabelName(w.AntiAffinity.GroupByLabelKey, path.Child("antiAffinity", "groupByLabelKey"))...)
	}
	if w.Affinity != nil && w.AntiAffinity != nil && w.Affinity.GroupByLabelKey == w.AntiAffinity.GroupByLabelKey {
		errs = append(errs, field.Invalid(path, w.Affinity.GroupByLabelKey, "affinity and antiAffinity must not group by the same label key"))
	}
	return errs
}

// selectors checks that they can mean something, and nothing outside of the
// policy's own namespace.
func selectors(ss []policyv1alpha1.ResourceSelector, namespace string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range ss {
		at := path.Index(i)
		if namespace != "" && ss[i].Namespace != namespace {
			errs = append(errs, field.Invalid(at.Child("namespace"), ss[i].Namespace,
				fmt.Sprintf("the namespace of resourceSelector should be the same as the policy's, %q", namespace)))
		}
		errs = append(errs, syntax.LabelSelector(ss[i].LabelSelector, at.Child("labelSelector"))...)
	}
	return errs
}
