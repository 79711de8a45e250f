package override

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Error says which override could not be applied.
type Error struct {
	// Policy is the name, with the namespace before it where it has one.
	Policy string
	// Rule is the index in overrideRules; -1 for the deprecated fields.
	Rule int
	// Overrider is the field in the rule, such as "imageOverrider[0]".
	Overrider string
	// Path in the manifest; empty where the overrider has none.
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
	return fmt.Sprintf("override policy %s: %s: %v", e.Policy, where, e.Err)
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

// Selects says whether o applies to r on some cluster.
func Selects(o policyv1alpha1.Override, r selector.Resource) bool {
	return specificity(o, r) != selector.None
}

// specificity is that of the best selector; a policy without selectors means
// every resource that it reaches.
func specificity(o policyv1alpha1.Override, r selector.Resource) selector.Specificity {
	if ns := o.GetNamespace(); o.GetDeletionTimestamp() != nil || ns != "" && ns != r.Namespace {
		return selector.None
	}
	selectors := o.OverrideSpec().ResourceSelectors
	if len(selectors) == 0 {
		return selector.All
	}
	return selector.Best(selectors, r)
}

// Sorted returns those of the overrides that apply to r, in the order in which
// they are applied: cluster-wide ones before namespaced ones, less specific
// ones before more specific ones, then by name. What comes later wins.
func Sorted(overrides []policyv1alpha1.Override, r selector.Resource) []policyv1alpha1.Override {
	type ranked struct {
		policyv1alpha1.Override
		specificity selector.Specificity
	}
	var matching []ranked
	for _, o := range overrides {
		if s := specificity(o, r); s != selector.None {
			matching = append(matching, ranked{o, s})
		}
	}
	slices.SortStableFunc(matching, func(a, b ranked) int {
		return cmp.Or(
			cmp.Compare(scope(a), scope(b)),
			cmp.Compare(a.specificity, b.specificity),
			cmp.Compare(a.GetName(), b.GetName()),
		)
	})
	out := make([]policyv1alpha1.Override, len(matching))
	for i := range matching {
		out[i] = matching[i].Override
	}
	return out
}

func scope(o policyv1alpha1.Override) int { return min(len(o.GetNamespace()), 1) }

// Apply changes obj for cluster and returns what was applied. The policies are
// matched against obj as it comes in. On an *Error obj may be half changed and
// must be thrown away.
func Apply(obj *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster, overrides []policyv1alpha1.Override) (Applied, error) {
	var out Applied
	for _, o := range Sorted(overrides, selector.ResourceOf(obj)) {
		items, err := applyPolicy(obj, cluster, o)
		if err != nil {
			return Applied{}, err
		}
		if o.GetNamespace() == "" {
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

func applyPolicy(obj *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster, o policyv1alpha1.Override) ([]Item, error) {
	spec := o.OverrideSpec()
	rules := spec.OverrideRules
	legacy := len(rules) == 0
	if legacy {
		rules = []policyv1alpha1.RuleWithCluster{{TargetCluster: spec.TargetCluster, Overriders: spec.Overriders}}
	}
	var items []Item
	for i := range rules {
		if !selector.Cluster(cluster, rules[i].TargetCluster) {
			continue
		}
		if err := applyRule(obj, &rules[i].Overriders); err != nil {
			err.Policy, err.Rule = nameOf(o), i
			if legacy {
				err.Rule = -1
			}
			return nil, err
		}
		items = append(items, Item{PolicyName: o.GetName(), Overriders: rules[i].Overriders})
	}
	return items, nil
}

func nameOf(o policyv1alpha1.Override) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// applyRule runs the overriders of one rule in their fixed order.
func applyRule(obj *unstructured.Unstructured, o *policyv1alpha1.Overriders) *Error {
	for i := range o.ImageOverrider {
		if path, err := applyImage(obj, &o.ImageOverrider[i]); err != nil {
			return &Error{Overrider: at("imageOverrider", i), Path: path, Err: err}
		}
	}
	for i := range o.CommandOverrider {
		if err := applyStrings(obj, "command", &o.CommandOverrider[i]); err != nil {
			return &Error{Overrider: at("commandOverrider", i), Err: err}
		}
	}
	for i := range o.ArgsOverrider {
		if err := applyStrings(obj, "args", &o.ArgsOverrider[i]); err != nil {
			return &Error{Overrider: at("argsOverrider", i), Err: err}
		}
	}
	for i := range o.LabelsOverrider {
		if err := applyMap(obj, "labels", &o.LabelsOverrider[i]); err != nil {
			return &Error{Overrider: at("labelsOverrider", i), Err: err}
		}
	}
	for i := range o.AnnotationsOverrider {
		if err := applyMap(obj, "annotations", &o.AnnotationsOverrider[i]); err != nil {
			return &Error{Overrider: at("annotationsOverrider", i), Err: err}
		}
	}
	for i := range o.FieldOverrider {
		if err := applyField(obj, &o.FieldOverrider[i]); err != nil {
			return &Error{Overrider: at("fieldOverrider", i), Path: o.FieldOverrider[i].FieldPath, Err: err}
		}
	}
	if path, err := applyPlaintext(obj, o.Plaintext); err != nil {
		return &Error{Overrider: "plaintext", Path: path, Err: err}
	}
	return nil
}

func at(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }
