package propagation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

func dependent(p policyv1alpha1.Policy) { p.PropagationSpec().DependentOverrides = []string{"tag"} }

func anonymous(p policyv1alpha1.Policy) { p.SetLabels(nil) }

// claimedBy returns the template with the claim of a policy of that name.
func claimedBy(ns, name string) *unstructured.Unstructured {
	obj := web()
	propagation.ClaimOf(policy(ns, name, byKind)).Set(obj)
	return obj
}

func labelled(key, value string) *unstructured.Unstructured {
	obj := web()
	obj.SetLabels(map[string]string{"app": "web", key: value})
	return obj
}

// decided returns a decision as text: its outcome, the policy, the one that the
// template is taken from, and what is missing.
func decided(d propagation.Decision) string {
	name := func(p policyv1alpha1.Policy) string {
		if p == nil {
			return "-"
		}
		return propagation.RefOf(p).String()
	}
	out := string(d.Outcome) + " " + name(d.Policy)
	if d.From != nil {
		out += " from " + name(d.From)
	}
	if len(d.Missing) > 0 {
		out += fmt.Sprint(" without ", d.Missing)
	}
	return out
}

func TestDecide(t *testing.T) {
	type policies = []policyv1alpha1.Policy
	pods := policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Pod"}
	older := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1beta1", Kind: "Deployment"}
	renewed := func(p policyv1alpha1.Policy) {
		p.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "2"})
	}
	system := web()
	system.SetNamespace("kube-system")
	cases := map[string]struct {
		template *unstructured.Unstructured
		policies policies
		have     bool // the override "tag"
		off      bool // preemption
		want     string
	}{
		"there is no policy":                      {template: web(), want: "Released -"},
		"none selects it":                         {template: web(), policies: policies{policy("shop", "a", pods)}, want: "Released -"},
		"its namespace beats any priority":        {template: web(), policies: policies{policy("", "a", byName, priority(99)), policy("shop", "b", byKind)}, want: "Carried shop/b"},
		"another namespace is not asked":          {template: web(), policies: policies{policy("bank", "a", byName), policy("", "b", byKind)}, want: "Carried b"},
		"priority before specificity":             {template: web(), policies: policies{policy("shop", "a", byName), policy("shop", "b", byKind, priority(1))}, want: "Carried shop/b"},
		"a negative priority is below none":       {template: web(), policies: policies{policy("shop", "a", byName, priority(-1)), policy("shop", "b", byKind)}, want: "Carried shop/b"},
		"a name before labels before all":         {template: web(), policies: policies{policy("shop", "a", byKind), policy("shop", "b", byLabels), policy("shop", "c", byName)}, want: "Carried shop/c"},
		"an empty label selector counts as one":   {template: web(), policies: policies{policy("shop", "a", byKind), policy("shop", "b", policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{}})}, want: "Carried shop/b"},
		"then the name that sorts first":          {template: web(), policies: policies{policy("shop", "b", byKind), policy("shop", "a", byKind)}, want: "Carried shop/a"},
		"one that is being deleted takes nothing": {template: web(), policies: policies{policy("shop", "a", byName, deleting), policy("shop", "b", byKind)}, want: "Carried shop/b"},
		"one without an id cannot claim":          {template: web(), policies: policies{policy("shop", "a", byName, anonymous), policy("shop", "b", byKind)}, want: "Carried shop/b"},
		"the best one waits for its overrides":    {template: web(), policies: policies{policy("shop", "a", byName, dependent), policy("shop", "b", byKind)}, want: "Waiting shop/a without [tag]"},
		"which are there":                         {template: web(), policies: policies{policy("shop", "a", byName, dependent), policy("shop", "b", byKind)}, have: true, want: "Carried shop/a"},

		"a claim is kept":                            {template: claimedBy("", "old"), policies: policies{policy("", "old", byKind), policy("shop", "new", byName, priority(9))}, want: "Carried old"},
		"a claim of a policy that is gone is not":    {template: claimedBy("", "gone"), policies: policies{policy("shop", "new", byName)}, want: "Carried shop/new"},
		"nobody takes over from it":                  {template: claimedBy("", "gone"), want: "Released -"},
		"a policy made anew under the name":          {template: claimedBy("shop", "p"), policies: policies{policy("shop", "p", byKind, renewed), policy("shop", "q", byName)}, want: "Carried shop/q"},
		"its policy is being deleted":                {template: claimedBy("shop", "p"), policies: policies{policy("shop", "p", byKind, deleting), policy("", "new", byName)}, want: "Carried new"},
		"and nobody takes over":                      {template: claimedBy("shop", "p"), policies: policies{policy("shop", "p", byKind, deleting)}, want: "Released -"},
		"and who would take over waits":              {template: claimedBy("shop", "p"), policies: policies{policy("shop", "p", byKind, deleting), policy("", "new", byName, dependent)}, want: "Released - without [tag]"},
		"a policy that no longer selects it":         {template: claimedBy("shop", "p"), policies: policies{policy("shop", "p", pods), policy("", "new", byName)}, want: "Carried new"},
		"its policy selects it in another version":   {template: claimedBy("shop", "p"), policies: policies{policy("shop", "p", older), policy("", "new", byName)}, want: "LeftAlone -"},
		"its policy waits for overrides":             {template: claimedBy("shop", "p"), policies: policies{policy("shop", "p", byKind, dependent)}, want: "Waiting shop/p without [tag]"},
		"another owner propagates it":                {template: labelled(workv1alpha2.ResourceTemplateClaimedByLabel, "MultiClusterService"), policies: policies{policy("shop", "p", byName)}, want: "LeftAlone -"},
		"its namespace is skipped":                   {template: system, policies: policies{policy("", "p", byName)}, want: "LeftAlone -"},
		"preemption by a higher priority":            {template: claimedBy("shop", "p"), policies: policies{policy("shop", "p", byName), policy("shop", "new", byName, priority(1), always)}, want: "Carried shop/new from shop/p"},
		"by a less specific selector, too":           {template: claimedBy("shop", "p"), policies: policies{policy("shop", "p", byName), policy("shop", "new", byKind, priority(1), always)}, want: "Carried shop/new from shop/p"},
		"not by the same priority":                   {template: claimedBy("shop", "p"), policies: policies{policy("shop", "p", byName), policy("shop", "new", byName, always)}, want: "Carried shop/p"},
		"not without preemption":                     {template: claimedBy("shop", "p"), policies: policies{policy("shop", "p", byName), policy("shop", "new", byName, priority(1))}, want: "Carried shop/p"},
		"not where it is switched off":               {template: claimedBy("shop", "p"), policies: policies{policy("shop", "p", byName), policy("shop", "new", byName, priority(1), always)}, off: true, want: "Carried shop/p"},
		"not before its overrides are there":         {template: claimedBy("shop", "p"), policies: policies{policy("shop", "p", byName), policy("shop", "new", byName, priority(1), always, dependent)}, want: "Carried shop/p"},
		"of a cluster-wide one by any namespaced":    {template: claimedBy("", "p"), policies: policies{policy("", "p", byName, priority(9)), policy("shop", "new", byName, always)}, want: "Carried shop/new from p"},
		"of a cluster-wide one by another":           {template: claimedBy("", "p"), policies: policies{policy("", "p", byName), policy("", "new", byName, always, priority(1))}, want: "Carried new from p"},
		"never of a namespaced one by the other way": {template: claimedBy("shop", "p"), policies: policies{policy("shop", "p", byName), policy("", "new", byName, priority(9), always)}, want: "Carried shop/p"},
		"the best of several challengers":            {template: claimedBy("shop", "p"), policies: policies{policy("shop", "p", byName), policy("shop", "a", byName, priority(1), always), policy("shop", "b", byName, priority(2), always)}, want: "Carried shop/b from shop/p"},
		"of one that waits for overrides":            {template: claimedBy("shop", "p"), policies: policies{policy("shop", "p", byName, dependent), policy("shop", "new", byName, priority(1), always)}, want: "Carried shop/new from shop/p"},
	}
	skip, err := propagation.NewSkipRules([]string{"kube-.*"}, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := propagation.Case{
				Template: tc.template, Candidates: tc.policies, Owner: propagation.OwnerOf(tc.template, tc.policies),
				HasOverride: func(string, string) bool { return tc.have }, Skip: skip, NoPreemption: tc.off,
			}
			if diff := cmp.Diff(tc.want, decided(propagation.Decide(c))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			slices.Reverse(c.Candidates)
			if diff := cmp.Diff(tc.want, decided(propagation.Decide(c))); diff != "" {
				t.Errorf("the order of policies matters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	type policies = []policyv1alpha1.Policy
	pods := policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Pod"}
	cases := map[string]struct {
		template *unstructured.Unstructured
		policies policies
		want     []string
	}{
		"a first choice": {
			template: web(),
			policies: policies{
				policy("shop", "kind", byKind), policy("shop", "later", byName), policy("shop", "first", byName, priority(1)),
				policy("shop", "labels", byLabels), policy("shop", "other", pods), policy("", "wide", byName, priority(9)),
				policy("shop", "gone", byName, deleting), policy("shop", "new", byName, anonymous), policy("shop", "same", byKind, priority(1)),
			},
			want: []string{
				"PropagationPolicy shop/first by name Wins: selected by name, priority 1",
				"PropagationPolicy shop/same all of its kind LessSpecific: it selects the template all of its kind, PropagationPolicy shop/first selects it by name",
				"PropagationPolicy shop/gone by name BeingDeleted: it is being deleted",
				"PropagationPolicy shop/later by name LowerPriority: its priority 0 is below 1 of PropagationPolicy shop/first",
				"PropagationPolicy shop/new by name NoID: it has no permanent id yet",
				"PropagationPolicy shop/labels by labels LowerPriority: its priority 0 is below 1 of PropagationPolicy shop/first",
				"PropagationPolicy shop/kind all of its kind LowerPriority: its priority 0 is below 1 of PropagationPolicy shop/first",
				"ClusterPropagationPolicy wide by name ClusterWide: PropagationPolicy shop/first is of the template's own namespace and comes first",
				"PropagationPolicy shop/other none NotSelected: its selectors do not mean the template",
			},
		},
		"a later name": {
			template: web(), policies: policies{policy("shop", "b", byKind), policy("shop", "a", byKind)},
			want: []string{
				"PropagationPolicy shop/a all of its kind Wins: selected all of its kind, priority 0",
				"PropagationPolicy shop/b all of its kind LaterName: its name sorts after that of PropagationPolicy shop/a",
			},
		},
		"a claim that is kept": {
			template: claimedBy("shop", "p"),
			policies: policies{
				policy("shop", "p", byKind, priority(2)), policy("shop", "meek", byName, priority(9)), policy("shop", "equal", byName, priority(2), always),
				policy("", "wide", byName, priority(9), always), policy("shop", "waits", byName, priority(9), always, dependent),
			},
			want: []string{
				"PropagationPolicy shop/p all of its kind Wins: selected all of its kind, priority 2; holds the template",
				"PropagationPolicy shop/meek by name DoesNotPreempt: PropagationPolicy shop/p holds the template, and this policy does not preempt",
				"PropagationPolicy shop/waits by name WaitsForOverrides: waits for overrides: tag",
				"PropagationPolicy shop/equal by name DoesNotPreempt: PropagationPolicy shop/p holds the template; to take it the priority 2 would have to be above 2",
				"ClusterPropagationPolicy wide by name DoesNotPreempt: PropagationPolicy shop/p holds the template; a cluster-wide policy takes nothing from one of a namespace",
			},
		},
		"a claim that is taken": {
			template: claimedBy("shop", "p"),
			policies: policies{policy("shop", "p", byKind), policy("shop", "strong", byName, priority(2), always), policy("shop", "weak", byName, priority(1), always)},
			want: []string{
				"PropagationPolicy shop/strong by name Wins: selected by name, priority 2; takes the template from PropagationPolicy shop/p: it preempts, and its priority 2 is above 0",
				"PropagationPolicy shop/weak by name LowerPriority: its priority 1 is below 2 of PropagationPolicy shop/strong",
				"PropagationPolicy shop/p all of its kind Preempted: PropagationPolicy shop/strong takes the template from it: it preempts, and its priority 2 is above 0",
			},
		},
		"the best one waits": {
			template: web(), policies: policies{policy("shop", "a", byName, dependent), policy("shop", "b", byKind)},
			want: []string{
				"PropagationPolicy shop/a by name WaitsForOverrides: waits for overrides: tag",
				"PropagationPolicy shop/b all of its kind LessSpecific: it selects the template all of its kind, PropagationPolicy shop/a selects it by name",
			},
		},
		"the template is another owner's": {
			template: labelled(workv1alpha2.ResourceTemplateClaimedByLabel, "MultiClusterService"), policies: policies{policy("shop", "a", byName)},
			want: []string{"PropagationPolicy shop/a by name NotForPolicies: left to MultiClusterService, which propagates it"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, v := range propagation.Verdicts(propagation.Case{
				Template: tc.template, Candidates: tc.policies, Owner: propagation.OwnerOf(tc.template, tc.policies),
			}) {
				got = append(got, fmt.Sprintf("%s %s %s %s: %s", v.Kind, v.Policy, v.Selected, v.Outcome, v.Why))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}

// randomCase returns a random template, and policies that are often similar.
func randomCase(rng *rand.Rand) propagation.Case {
	selectors := []policyv1alpha1.ResourceSelector{
		byName, byKind, byLabels, {APIVersion: "v1", Kind: "Pod"}, {APIVersion: "apps/v1beta1", Kind: "Deployment"},
		{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "bank"},
		{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "tier": "front"}}},
		{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}},
		{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}},
		{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"api", "web"}}}}},
		{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "gone", Operator: metav1.LabelSelectorOpDoesNotExist}}}},
		{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"api"}}}}},
	}
	edits := []func(policyv1alpha1.Policy){always, deleting, dependent, anonymous, priority(1), priority(2), always, always}
	var all []policyv1alpha1.Policy
	for i := range rng.IntN(6) {
		p := policy([]string{"shop", "", "bank"}[rng.IntN(3)], fmt.Sprint("p", i), selectors[rng.IntN(len(selectors))])
		if rng.IntN(3) == 0 {
			spec := p.PropagationSpec()
			spec.ResourceSelectors = append(spec.ResourceSelectors, selectors[rng.IntN(len(selectors))])
		}
		for range rng.IntN(3) {
			edits[rng.IntN(len(edits))](p)
		}
		all = append(all, p)
	}
	obj := web()
	if len(all) > 0 && rng.IntN(2) == 0 {
		propagation.ClaimOf(all[rng.IntN(len(all))]).Set(obj)
	}
	have := rng.IntN(2) == 0
	return propagation.Case{
		Template: obj, Candidates: all, Owner: propagation.OwnerOf(obj, all),
		HasOverride: func(string, string) bool { return have }, NoPreemption: rng.IntN(4) == 0,
	}
}

// FuzzDecide checks what is true of every decision: the index finds every policy
// that matters, the verdicts agree with the decision, and deciding again after
// acting on it changes nothing.
func FuzzDecide(f *testing.F) {
	for seed := range uint64(400) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		c := randomCase(rand.New(rand.NewPCG(seed, 1)))
		d := propagation.Decide(c)

		narrow := c
		narrow.Candidates = propagation.NewIndex(c.Candidates).Candidates(selector.ResourceOf(c.Template))
		if diff := cmp.Diff(decided(d), decided(propagation.Decide(narrow))); diff != "" {
			t.Errorf("by the index it is decided otherwise (-all +index):\n%s", diff)
		}

		wins := 0
		for _, v := range propagation.Verdicts(c) {
			if v.Outcome == propagation.Wins {
				wins++
				if d.Outcome != propagation.Carried || propagation.RefOf(d.Policy) != v.Policy {
					t.Errorf("%s wins, decided is %s", v.Policy, decided(d))
				}
			}
			if v.Why == "" || (v.Outcome == propagation.WaitsForOverrides && v.Why == "waits for overrides: ") {
				t.Errorf("%s: %s has no reason", v.Policy, v.Outcome)
			}
		}
		if (wins == 1) != (d.Outcome == propagation.Carried) {
			t.Errorf("%d policies win, decided is %s", wins, decided(d))
		}

		switch d.Outcome {
		case propagation.Carried:
			propagation.ClaimOf(d.Policy).Set(c.Template)
		case propagation.Released:
			propagation.Unclaim(c.Template)
		case propagation.Waiting, propagation.LeftAlone: // stays as it is
		}
		c.Owner = propagation.OwnerOf(c.Template, c.Candidates)
		again := propagation.Decide(c)
		if d.From = nil; d.Outcome == propagation.Carried && decided(d) != decided(again) {
			t.Errorf("decided again: %s, was %s", decided(again), decided(d))
		}
		if d.Outcome == propagation.Released && again.Policy != nil && again.Outcome == propagation.Carried {
			t.Errorf("released, then %s", decided(again))
		}
	})
}
