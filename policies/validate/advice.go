package validate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/validate/syntax"
)

// policyAdvice lists what is valid in a policy and yet will not do what it says.
func policyAdvice(p policyv1alpha1.Policy) []string {
	spec, path := p.PropagationSpec(), field.NewPath("spec")
	var out []string
	if ns := p.GetNamespace(); ns != "" && propagation.Reserved(ns) {
		out = append(out, syntax.Advise(field.NewPath("metadata", "namespace"), "nothing in %s is propagated: use another namespace", ns))
	}
	if _, opens := p.GetAnnotations()[dependency.NamespacesAnnotation]; opens && p.GetNamespace() != "" {
		out = append(out, syntax.Advise(field.NewPath("metadata", "annotations").Key(dependency.NamespacesAnnotation), "has no effect here: it is an administrator's, on a ClusterPropagationPolicy"))
	}
	if spec.Association {
		out = append(out, syntax.Advise(path.Child("association"), "is deprecated and has no effect: use spec.propagateDeps"))
	}
	out = append(out, selectorAdvice(spec.ResourceSelectors, path.Child("resourceSelectors"), true)...)
	out = append(out, dependentAdvice(spec.DependentOverrides, path.Child("dependentOverrides"))...)
	return append(out, placementAdvice(&spec.Placement, path.Child("placement"))...)
}

// selectorAdvice speaks of selectors that select nothing, or nothing more than
// others; for overrides, which change templates of any kind, it is enough that
// they are distinguished.
func selectorAdvice(ss []policyv1alpha1.ResourceSelector, path *field.Path, propagates bool) []string {
	var out []string
	known := seen{}
	for i := range ss {
		s, at := &ss[i], path.Index(i)
		if s.Name != "" && s.LabelSelector != nil {
			out = append(out, syntax.Advise(at.Child("labelSelector"), "has no effect next to a name: remove one of them"))
		} else {
			out = append(out, labelAdvice(s.LabelSelector, at.Child("labelSelector"))...)
		}
		if n := known.before(i, s); n < i {
			out = append(out, syntax.Advise(at, "says the same as resourceSelectors[%d]: remove one of them", n))
		}
		if gv, err := schema.ParseGroupVersion(s.APIVersion); err == nil && !propagation.PropagatesKind(gv.WithKind(s.Kind), propagation.SkipRules{}) {
			out = append(out, syntax.Advise(at.Child("kind"), "%s of %s stays on the control plane and is never propagated: remove the selector", s.Kind, s.APIVersion))
		}
		if propagates && s.Namespace != "" && propagation.Reserved(s.Namespace) {
			out = append(out, syntax.Advise(at.Child("namespace"), "nothing in %s is propagated: name another namespace", s.Namespace))
		}
	}
	return out
}

func dependentAdvice(names []string, path *field.Path) []string {
	var out []string
	known := seen{}
	for i, name := range names {
		switch {
		case name == "":
			out = append(out, syntax.Advise(path.Index(i), "is empty, so the policy waits forever: name an override, or remove it"))
		case known.before(i, name) < i:
			out = append(out, syntax.Advise(path.Index(i), "%s is listed before: remove one of them", name))
		}
	}
	return out
}

func placementAdvice(p *policyv1alpha1.Placement, path *field.Path) []string {
	out := affinityAdvice(p.ClusterAffinity, path.Child("clusterAffinity"))
	out = append(out, termAdvice(p.ClusterAffinities, path.Child("clusterAffinities"))...)
	known := seen{}
	for i, t := range p.ClusterTolerations {
		at := path.Child("clusterTolerations").Index(i)
		out = append(out, tolerationAdvice(t, at)...)
		if known.before(i, t) < i {
			out = append(out, syntax.Advise(at, "is there twice: remove one of them"))
		}
	}
	out = append(out, spreadAdvice(p, path.Child("spreadConstraints"))...)
	return append(out, strategyAdvice(p, path.Child("replicaScheduling"))...)
}

// affinityAdvice speaks of an affinity that no cluster can have.
func affinityAdvice(a *policyv1alpha1.ClusterAffinity, path *field.Path) []string {
	if a == nil {
		return nil
	}
	var out []string
	if names := allowed(a); len(a.ClusterNames) > 0 && len(names) == 0 {
		out = append(out, syntax.Advise(path, "exclude lists every cluster of clusterNames, so no cluster is left: remove one from exclude"))
	} else {
		named := sets.New(a.ClusterNames...)
		for i, name := range a.ExcludeClusters {
			if named.Has(name) {
				out = append(out, syntax.Advise(path.Child("exclude").Index(i), "%s is in clusterNames, too, and is excluded: remove it from one of them", name))
			}
		}
	}
	out = append(out, labelAdvice(a.LabelSelector, path.Child("labelSelector"))...)
	if a.FieldSelector == nil {
		return out
	}
	for i, e := range a.FieldSelector.MatchExpressions {
		if e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 0 {
			out = append(out, syntax.Advise(path.Child("fieldSelector", "matchExpressions").Index(i).Child("values"), "is empty, so no cluster matches: list a value"))
		}
	}
	return out
}

// allowed are the clusters that an affinity names and does not exclude.
func allowed(a *policyv1alpha1.ClusterAffinity) []string {
	excluded := sets.New(a.ExcludeClusters...)
	return slices.DeleteFunc(slices.Clone(a.ClusterNames), excluded.Has)
}

// termAdvice speaks of terms that are never reached: of groups of clusters that
// are tried in order, one that has no cluster of its own cannot fit any better.
func termAdvice(terms []policyv1alpha1.ClusterAffinityTerm, path *field.Path) []string {
	var out []string
	known, all := seen{}, len(terms) // the first that allows every cluster
	for i := range terms {
		at := path.Index(i)
		out = append(out, affinityAdvice(&terms[i].ClusterAffinity, at)...)
		for j := range terms[i].OverflowAffinities {
			out = append(out, affinityAdvice(&terms[i].OverflowAffinities[j].ClusterAffinity, at.Child("overflowAffinities").Index(j))...)
		}
		if n := min(known.before(i, &terms[i].ClusterAffinity), all); n < i {
			out = append(out, syntax.Advise(at, "is never reached: clusterAffinities[%d] allows all of its clusters; put it before that one, or remove it", n))
		}
		if equality.Semantic.DeepEqual(terms[i].ClusterAffinity, policyv1alpha1.ClusterAffinity{}) {
			all = min(all, i)
		}
	}
	return out
}

func tolerationAdvice(t corev1.Toleration, path *field.Path) []string {
	var out []string
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute:
	default:
		out = append(out, syntax.Advise(path.Child("effect"), "clusters have no taints of effect %s: use NoSchedule or NoExecute, or leave it out for both", t.Effect))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		out = append(out, syntax.Advise(path.Child("tolerationSeconds"), "has no effect unless effect is NoExecute: set effect, or remove it"))
	}
	return out
}

// spreadAdvice speaks of constraints that no choice of clusters can meet.
func spreadAdvice(p *policyv1alpha1.Placement, path *field.Path) []string {
	if len(p.SpreadConstraints) > 0 && replicas.Static(p.ReplicaScheduling) {
		return []string{syntax.Advise(path, "have no effect when replicas are divided by fixed weights: use dynamicWeight, or remove them")}
	}
	var out []string
	groups := map[policyv1alpha1.SpreadFieldValue]policyv1alpha1.SpreadConstraint{}
	for i, c := range p.SpreadConstraints {
		if c.MaxGroups == 0 {
			out = append(out, syntax.Advise(path.Index(i), "maxGroups is not set, so there is no maximum"))
		}
		groups[c.SpreadByField] = c
	}
	clusters, limited := groups[policyv1alpha1.SpreadByFieldCluster]
	if !limited {
		return out
	}
	for i, c := range p.SpreadConstraints {
		at := path.Index(i)
		if c.SpreadByField != "" && c.SpreadByField != policyv1alpha1.SpreadByFieldCluster && clusters.MaxGroups > 0 && c.MinGroups > clusters.MaxGroups {
			out = append(out, syntax.Advise(at.Child("minGroups"), "%d of %s can not be met by %d clusters: raise the cluster constraint's maxGroups", c.MinGroups, c.SpreadByField, clusters.MaxGroups))
		}
	}
	if a := p.ClusterAffinity; a != nil && len(a.ClusterNames) > 0 {
		if n := len(slices.Compact(slices.Sorted(slices.Values(allowed(a))))); n > 0 && clusters.MinGroups > n {
			out = append(out, syntax.Advise(path, "%d clusters are needed, clusterAffinity names %d: name more clusters, or lower minGroups", clusters.MinGroups, n))
		}
	}
	return out
}

// strategyAdvice speaks of parts of a strategy that do not count, and of weights
// for clusters that are not chosen.
func strategyAdvice(p *policyv1alpha1.Placement, path *field.Path) []string {
	s := p.ReplicaScheduling
	if s == nil {
		return nil
	}
	var out []string
	if replicas.Duplicates(s) {
		if s.ReplicaDivisionPreference != "" {
			out = append(out, syntax.Advise(path.Child("replicaDivisionPreference"), "has no effect when replicas are Duplicated: set replicaSchedulingType to Divided, or remove it"))
		}
		if s.WeightPreference != nil {
			out = append(out, syntax.Advise(path.Child("weightPreference"), "has no effect when replicas are Duplicated: set replicaSchedulingType to Divided, or remove it"))
		}
		return out
	}
	w, at := s.WeightPreference, path.Child("weightPreference")
	switch {
	case w == nil:
		return out
	case s.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated:
		return append(out, syntax.Advise(at, "has no effect when the preference is Aggregated: use Weighted, or remove it"))
	case w.DynamicWeight != "" && len(w.StaticWeightList) > 0:
		return append(out, syntax.Advise(at.Child("staticWeightList"), "has no effect next to dynamicWeight: remove one of them"))
	}
	chosen := choiceOf(p)
	for i := range w.StaticWeightList {
		target, place := &w.StaticWeightList[i].TargetCluster, at.Child("staticWeightList").Index(i).Child("targetCluster")
		out = append(out, affinityAdvice(target, place)...)
		if chosen.strangers(target) {
			out = append(out, syntax.Advise(place.Child("clusterNames"), "the affinity allows none of %s: add one there, or remove the weight", strings.Join(target.ClusterNames, ", ")))
		}
	}
	return out
}
