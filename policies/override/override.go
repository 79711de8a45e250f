package override

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Error says which override could not be applied, why, and what to do about it.
type Error struct {
	// Policy is the name, with the namespace before it where it has one; *** stands for a name that text of a Secret is in.
	Policy string
	// Rule is the index in overrideRules; -1 for the deprecated fields.
	Rule int
	// Overrider is the field in the rule, such as "imageOverrider[0]".
	Overrider string
	// Path in the manifest, a JSON pointer; empty where the overrider has none, and where text of a Secret is in the policy.
	Path string
	Err  error
}

func (e *Error) Error() string {
	where := e.Overrider
	if e.Rule >= 0 {
		where = fmt.Sprintf("overrideRules[%d].%s", e.Rule, e.Overrider)
	}
	if e.Path != "" {
		where += " at " + e.Path
	}
	return FaultText(e.Policy, fmt.Sprintf("%s: %v", where, e.Err))
}

// FaultText is the text of what is wrong with a policy, named as in Error, that FaultOf reads.
func FaultText(policy, text string) string { return faultPrefix + policy + ": " + text }

const faultPrefix = "override policy "

// FaultOf returns the policy that the text of an Error names; false for other texts.
func FaultOf(text string) (namespace, name string, ok bool) {
	text, ok = strings.CutPrefix(text, faultPrefix)
	policy, _, more := strings.Cut(text, ": ")
	namespace, name, namespaced := strings.Cut(policy, "/")
	if !namespaced {
		namespace, name = "", policy
	}
	if !ok || !more || namespaced && len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", "", false
	}
	return namespace, name, true
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Item is one rule that was applied.
type Item struct {
	PolicyName string                    `json:"policyName"`
	Overriders policyv1alpha1.Overriders `json:"overriders"`
}

// Applied is what was applied to a manifest, each list sorted by policy name
// and, within one policy, in the order of its rules.
type Applied struct {
	// Cluster are rules of cluster-wide policies, Namespaced those of policies
	// in the manifest's namespace.
	Cluster, Namespaced []Item
}

// Annotations returns the annotations that record a on a Work; none where
// nothing was applied.
func (a Applied) Annotations() map[string]string {
	out := map[string]string{}
	if text := record(a.Cluster); text != "" {
		out[policyv1alpha1.AppliedClusterOverrides] = text
	}
	if text := record(a.Namespaced); text != "" {
		out[policyv1alpha1.AppliedOverrides] = text
	}
	return out
}

// Matches reports whether the annotations of a Work record a, and nothing else.
func (a Applied) Matches(annotations map[string]string) bool {
	want := a.Annotations()
	return annotations[policyv1alpha1.AppliedClusterOverrides] == want[policyv1alpha1.AppliedClusterOverrides] &&
		annotations[policyv1alpha1.AppliedOverrides] == want[policyv1alpha1.AppliedOverrides]
}

// Recorded returns kind and name of each policy that the annotations of a Work say was
// applied, once each; none where they cannot be read.
func Recorded(annotations map[string]string) []string {
	var out []string
	for _, of := range []struct{ key, kind string }{
		{policyv1alpha1.AppliedClusterOverrides, policyv1alpha1.ResourceKindClusterOverridePolicy},
		{policyv1alpha1.AppliedOverrides, policyv1alpha1.ResourceKindOverridePolicy},
	} {
		var items []Item
		if json.Unmarshal([]byte(annotations[of.key]), &items) != nil {
			continue
		}
		for _, item := range items {
			if title := of.kind + " " + item.PolicyName; !slices.Contains(out, title) {
				out = append(out, title)
			}
		}
	}
	return out
}

func record(items []Item) string {
	if len(items) == 0 {
		return ""
	}
	data, err := json.Marshal(items)
	if err != nil {
		return "" // values came from JSON
	}
	return string(data)
}

// Chain is the overrides that mean one resource, in the order in which they are
// applied, made ready for many clusters. It may be used by several goroutines.
type Chain []link

// link is one override of a chain.
type link struct {
	policy policyv1alpha1.Override
	rules  []rule
	legacy bool // the one rule is made of the deprecated fields
}

type rule struct {
	clusters   selector.Clusters
	nowhere    bool // what picks the clusters cannot be parsed
	overriders *policyv1alpha1.Overriders
}

// Matching returns the chain for r of those overrides that mean it.
func Matching(overrides []policyv1alpha1.Override, r selector.Resource) Chain {
	sorted := Sorted(overrides, r)
	chain := make(Chain, len(sorted))
	for i, o := range sorted {
		rules, legacy := rulesOf(o)
		chain[i] = link{policy: o, legacy: legacy, rules: make([]rule, len(rules))}
		for j := range rules {
			clusters, err := selector.Compile(rules[j].TargetCluster)
			chain[i].rules[j] = rule{clusters: clusters, nowhere: err != nil, overriders: &rules[j].Overriders}
		}
	}
	return chain
}

// rulesOf returns the rules of o. Without rules the deprecated fields are one.
func rulesOf(o policyv1alpha1.Override) (rules []policyv1alpha1.RuleWithCluster, legacy bool) {
	spec := o.OverrideSpec()
	if len(spec.OverrideRules) > 0 {
		return spec.OverrideRules, false
	}
	return []policyv1alpha1.RuleWithCluster{{TargetCluster: spec.TargetCluster, Overriders: spec.Overriders}}, true
}

// Apply changes obj for cluster and returns what was applied. On an *Error obj
// may be half changed and must be thrown away.
func (c Chain) Apply(obj *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster) (Applied, error) {
	return c.Follow(obj, cluster, nil)
}

// Follow is Apply with a call after each rule that was applied, for those who
// explain what it changed: after is called with the policy and the index of the rule,
// -1 for the deprecated fields, while obj is as that rule left it.
func (c Chain) Follow(obj *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster, after func(policyv1alpha1.Override, int)) (Applied, error) {
	e := newEditor(obj)
	return c.each(cluster, func(l *link, index int, o *policyv1alpha1.Overriders) error {
		if err := e.rule(o); err != nil {
			err.redact(l.policy, index, e.manifestSecret)
			return err
		}
		if after != nil {
			after(l.policy, index)
		}
		return nil
	})
}

// Means returns what Apply would have applied, without an object: whether it can be is not known.
func (c Chain) Means(cluster *clusterv1alpha1.Cluster) Applied {
	out, _ := c.each(cluster, func(*link, int, *policyv1alpha1.Overriders) error { return nil }) // never an error
	return out
}

// each calls do with the rules that mean the cluster, in their order, and returns them.
func (c Chain) each(cluster *clusterv1alpha1.Cluster, do func(l *link, index int, o *policyv1alpha1.Overriders) error) (Applied, error) {
	var out Applied
	for i := range c {
		items, err := c[i].each(cluster, do)
		if err != nil {
			return Applied{}, err
		}
		if c[i].policy.GetNamespace() == "" {
			out.Cluster = append(out.Cluster, items...)
		} else {
			out.Namespaced = append(out.Namespaced, items...)
		}
	}
	byPolicy := func(a, b Item) int { return cmp.Compare(a.PolicyName, b.PolicyName) }
	slices.SortStableFunc(out.Cluster, byPolicy)
	slices.SortStableFunc(out.Namespaced, byPolicy)
	return out, nil
}

func (l *link) each(cluster *clusterv1alpha1.Cluster, do func(l *link, index int, o *policyv1alpha1.Overriders) error) ([]Item, error) {
	var items []Item
	for i := range l.rules {
		r := &l.rules[i]
		if r.nowhere || !r.clusters.Matches(cluster) {
			continue
		}
		index := i
		if l.legacy {
			index = -1
		}
		if err := do(l, index, r.overriders); err != nil {
			return nil, err
		}
		items = append(items, Item{PolicyName: l.policy.GetName(), Overriders: *r.overriders})
	}
	return items, nil
}

// nameOf is how texts name a policy; text of a Secret in its name is left out.
func nameOf(o policyv1alpha1.Override) string {
	name := o.GetName()
	if o.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] == gitopsv1alpha1.HoldsInName {
		name = "***"
	}
	if o.GetNamespace() == "" {
		return name
	}
	return o.GetNamespace() + "/" + name
}
