package propagation_test

import (
	"strings"
	"testing"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestUnheeded checks that a policy's request that is not followed is reported
// with the policy that keeps the template, or with the change that is waited for.
func TestUnheeded(t *testing.T) {
	lazy := func(p policyv1alpha1.Policy) {
		p.PropagationSpec().ActivationPreference = policyv1alpha1.LazyActivation
	}
	further := func(p policyv1alpha1.Policy) {
		p.PropagationSpec().Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1", "m2"}}
	}
	all := func(p ...policyv1alpha1.Policy) []policyv1alpha1.Policy { return p }
	old := policy("shop", "old", byKind)
	const kept = "by PropagationPolicy shop/web, as PropagationPolicy shop/old keeps it: delete that, or have the first preempt it"
	const awaited = "by PropagationPolicy shop/old before its next change, as that is Lazy"
	for name, tc := range map[string]struct {
		owner     policyv1alpha1.Policy
		edit      func(policyv1alpha1.Policy) // made to the owner after it was applied
		unbound   bool
		competing []policyv1alpha1.Policy
		want      string
	}{
		"no other policy asks for it":               {owner: old, competing: all(old)},
		"another one of this name puts it behind":   {owner: old, competing: all(policy("shop", "web", byKind)), want: kept},
		"both belong together, and it comes first":  {owner: old, competing: all(old, policy("shop", "web", byKind))},
		"both belong together, and it comes last":   {owner: policy("shop", "z", byKind), competing: all(policy("shop", "z", byKind), policy("shop", "web", byKind)), want: "by PropagationPolicy shop/web, as PropagationPolicy shop/z keeps it: delete that, or have the first preempt it"},
		"a closer selector":                         {owner: old, competing: all(old, policy("shop", "web", byName)), want: kept},
		"a wider selector":                          {owner: policy("shop", "old", byName), competing: all(policy("shop", "web", byKind))},
		"a lower priority":                          {owner: old, competing: all(policy("shop", "web", byName, priority(-1)))},
		"one for all namespaces":                    {owner: old, competing: all(policy("", "web", byName))},
		"one that preempts it":                      {owner: old, competing: all(policy("shop", "web", byName, priority(1), always))},
		"one that may not preempt it":               {owner: old, competing: all(policy("shop", "web", byName, always)), want: kept},
		"one that selects something else":           {owner: old, competing: all(policy("shop", "web", policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Service"}))},
		"one that is being deleted":                 {owner: old, competing: all(policy("shop", "web", byName, deleting))},
		"the owner is being deleted":                {owner: policy("shop", "old", byKind, deleting), competing: all(policy("shop", "web", byName))},
		"a Lazy policy is as it was":                {owner: policy("shop", "old", byKind, lazy)},
		"a Lazy policy asks for a further cluster":  {owner: policy("shop", "old", byKind, lazy), edit: further, want: awaited},
		"an eager policy does, and will be at once": {owner: old, edit: further},
		"a Lazy policy has yet to act":              {owner: policy("shop", "old", byKind, lazy), unbound: true, want: awaited},
	} {
		t.Run(name, func(t *testing.T) {
			c := lazyCase{template: web(), p: tc.owner}
			c.template.SetCreationTimestamp(at(-1))
			if !tc.unbound {
				c.template.SetCreationTimestamp(at(1))
			}
			c.p.SetCreationTimestamp(at(0))
			c.claim(t)
			var binding workv1alpha2.Binding
			if !tc.unbound {
				if c.binding == nil {
					t.Fatal("it is not bound")
				}
				*c.binding.BindingSpec() = propagation.BindingSpec(propagation.Template{Object: c.template, Replicas: 1}, c.p, nil)
				binding = c.binding
			}
			if tc.edit != nil {
				c.p = c.p.DeepCopyObject().(policyv1alpha1.Policy)
				tc.edit(c.p)
				c.p.SetGeneration(2)
			}
			got, contested, err := propagation.Unheeded(c.template, c.p, binding, tc.competing)
			if err != nil || got != tc.want || contested != strings.Contains(tc.want, "keeps it") {
				t.Errorf("got %q, contested %t, %v; want %q", got, contested, err, tc.want)
			}
		})
	}
}
