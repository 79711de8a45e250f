package explain

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/explain/change"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// overrides explains what differs from cluster to cluster.
func (x *explainer) overrides() {
	in, some := x.worksInput()
	if !some || x.in.blind(UnreadClusters) {
		return
	}
	works, err := plan.Works(in)
	if err != nil {
		x.problems.add(Problem{Reason: ReasonInvalidTemplate, Message: "no manifest can be made of it: " + err.Error()})
		return
	}
	x.works = works
	chain := override.Matching(in.Overrides, selector.ResourceOf(in.Template))
	out := &Overrides{}
	used := map[Ref]bool{}
	for i := range works {
		c, some := overridesOf(&in, &works[i], chain)
		if some {
			out.Clusters = append(out.Clusters, c)
		}
		for _, r := range c.Rules {
			used[r.Policy] = true
		}
	}
	for _, o := range override.Sorted(in.Overrides, selector.ResourceOf(in.Template)) {
		if ref := refOfOverride(o); !used[ref] && !failedIn(out.Clusters) {
			out.Idle = append(out.Idle, ref)
		}
	}
	if len(out.Clusters)+len(out.Idle) > 0 {
		x.out.Overrides = out
	}
}

func failedIn(clusters []ClusterOverrides) bool {
	return slices.ContainsFunc(clusters, func(c ClusterOverrides) bool { return c.Error != "" })
}

// worksInput returns the input from which Works are made; false where there is no binding.
func (x *explainer) worksInput() (plan.WorksInput, bool) {
	in := plan.WorksInput{
		Binding: x.in.Binding, Template: x.in.Template, Cluster: x.snap.Cluster,
		Overrides: x.in.Overrides, Interpreter: x.in.Interpreter, Quotas: plan.QuotasOf(x.in.Quotas, x.in.Template.GetNamespace()),
	}
	if x.plan.Binding != nil {
		in.Binding = x.plan.Binding
		in.Template = x.in.Template.DeepCopy()
		if x.plan.Policy != nil {
			propagation.ClaimOf(x.plan.Policy).Set(in.Template)
		}
	}
	return in, in.Binding != nil
}

// overridesOf returns what the rules do to the manifest of one cluster; false where they do nothing.
func overridesOf(in *plan.WorksInput, work *plan.WorkPlan, chain override.Chain) (ClusterOverrides, bool) {
	out := ClusterOverrides{Cluster: work.Cluster}
	if work.Err != nil {
		out.Error = work.Err.Error()
	}
	cluster, known := in.Cluster(work.Cluster)
	manifest, err := in.Manifest(work.Cluster)
	if err != nil || !known || len(chain) == 0 {
		return out, out.Error != ""
	}
	before := manifest.DeepCopy()
	_, err = chain.Follow(manifest, cluster, func(o policyv1alpha1.Override, rule int) {
		out.Rules = append(out.Rules, Rule{Policy: refOfOverride(o), Index: rule, Changes: changes(before, manifest)})
		before = manifest.DeepCopy()
	})
	if err != nil && out.Error == "" {
		out.Error = err.Error()
	}
	return out, out.Error != "" || len(out.Rules) > 0
}

func changes(before, after *unstructured.Unstructured) []change.Change {
	out := change.Carried(change.Between(before.Object, after.Object), change.Between(plan.Carried(before).Object, plan.Carried(after).Object))
	if before.GetAPIVersion() == "v1" && before.GetKind() == "Secret" {
		change.Conceal(out)
	}
	return out
}

func refOfOverride(o policyv1alpha1.Override) Ref {
	kind := policyv1alpha1.ResourceKindOverridePolicy
	if o.GetNamespace() == "" {
		kind = policyv1alpha1.ResourceKindClusterOverridePolicy
	}
	return Ref{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// String returns the policy and the number of the rule.
func (r Rule) String() string {
	if r.Index < 0 {
		return r.Policy.String()
	}
	return fmt.Sprintf("%s, rule %d", r.Policy, r.Index)
}
