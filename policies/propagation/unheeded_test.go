package propagation_test

import (
	"testing"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestUnheeded: what a policy asks for and is not done is told with the policy that keeps it, or that it waits for a change.
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
		holder  policyv1alpha1.Policy
		edit    func(policyv1alpha1.Policy) // of the holder, after it was acted on
		unbound bool
		rivals  []policyv1alpha1.Policy
		want    string
	}{
		"no other policy asks for it":               {holder: old, rivals: all(old)},
		"another one of this name puts it behind":   {holder: old, rivals: all(policy("shop", "web", byKind)), want: kept},
		"both belong together, and it comes first":  {holder: old, rivals: all(old, policy("shop", "web", byKind))},
		"both belong together, and it comes last":   {holder: policy("shop", "z", byKind), rivals: all(policy("shop", "z", byKind), policy("shop", "web", byKind)), want: "by PropagationPolicy shop/web, as PropagationPolicy shop/z keeps it: delete that, or have the first preempt it"},
		"a closer selector":                         {holder: old, rivals: all(old, policy("shop", "web", byName)), want: kept},
		"a wider selector":                          {holder: policy("shop", "old", byName), rivals: all(policy("shop", "web", byKind))},
		"a lower priority":                          {holder: old, rivals: all(policy("shop", "web", byName, priority(-1)))},
		"one for all namespaces":                    {holder: old, rivals: all(policy("", "web", byName))},
		"one that preempts it":                      {holder: old, rivals: all(policy("shop", "web", byName, priority(1), always))},
		"one that may not preempt it":               {holder: old, rivals: all(policy("shop", "web", byName, always)), want: kept},
		"one that selects something else":           {holder: old, rivals: all(policy("shop", "web", policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Service"}))},
		"one that is being deleted":                 {holder: old, rivals: all(policy("shop", "web", byName, deleting))},
		"the holder is being deleted":               {holder: policy("shop", "old", byKind, deleting), rivals: all(policy("shop", "web", byName))},
		"a Lazy policy is as it was":                {holder: policy("shop", "old", byKind, lazy)},
		"a Lazy policy asks for a further cluster":  {holder: policy("shop", "old", byKind, lazy), edit: further, want: awaited},
		"an eager policy does, and will be at once": {holder: old, edit: further},
		"a Lazy policy has yet to act":              {holder: policy("shop", "old", byKind, lazy), unbound: true, want: awaited},
	} {
		t.Run(name, func(t *testing.T) {
			c := lazyCase{template: web(), p: tc.holder}
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
			got, err := propagation.Unheeded(c.template, c.p, binding, tc.rivals)
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}
