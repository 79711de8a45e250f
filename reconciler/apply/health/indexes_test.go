package health

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestIndexesAreKept: an index is used again unless policies or overrides have changed.
func TestIndexesAreKept(t *testing.T) {
	policy := func(name, version string) policyv1alpha1.Policy {
		return &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: version, UID: "u"}}
	}
	anew := func(name, version string) policyv1alpha1.Policy {
		p := policy(name, version)
		p.SetUID("v")
		return p
	}
	override := func(name, version string) policyv1alpha1.Override {
		return &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: version, UID: "u"}}
	}
	type rules struct {
		policies  []policyv1alpha1.Policy
		overrides []policyv1alpha1.Override
	}
	all := func(p ...policyv1alpha1.Policy) []policyv1alpha1.Policy { return p }
	with := func(o ...policyv1alpha1.Override) []policyv1alpha1.Override { return o }
	first := rules{all(policy("a", "1"), policy("b", "1")), with(override("o", "1"))}
	for name, tc := range map[string]struct {
		then []rules
		same bool // the last index is the first one
	}{
		"nothing has changed":                {[]rules{{all(policy("a", "1"), policy("b", "1")), with(override("o", "1"))}}, true},
		"they come in another order":         {[]rules{{all(policy("b", "1"), policy("a", "1")), with(override("o", "1"))}}, true},
		"a policy has changed":               {[]rules{{all(policy("a", "2"), policy("b", "1")), with(override("o", "1"))}}, false},
		"one is gone":                        {[]rules{{all(policy("b", "1")), with(override("o", "1"))}}, false},
		"one is there more":                  {[]rules{{all(policy("a", "1"), policy("b", "1"), policy("c", "1")), with(override("o", "1"))}}, false},
		"one was deleted and made anew":      {[]rules{{all(anew("a", "1"), policy("b", "1")), with(override("o", "1"))}}, false},
		"an override has changed":            {[]rules{{all(policy("a", "1"), policy("b", "1")), with(override("o", "2"))}}, false},
		"one took the place of a policy":     {[]rules{{all(policy("a", "1")), with(override("b", "1"), override("o", "1"))}}, false},
		"the cache lags behind, and is back": {[]rules{{all(policy("a", "2"), policy("b", "1")), with(override("o", "1"))}, first}, true},
		"two others were asked for since":    {[]rules{{all(policy("a", "2")), nil}, {all(policy("a", "3")), nil}, first}, false},
	} {
		t.Run(name, func(t *testing.T) {
			x := &indexes{}
			before := x.of(first.policies, first.overrides, propagation.SkipRules{})
			var last *indexed
			for _, r := range tc.then {
				last = x.of(r.policies, r.overrides, propagation.SkipRules{})
			}
			if (last == before) != tc.same {
				t.Errorf("the same index: %t, want %t", last == before, tc.same)
			}
			if len(x.kept) > mostIndexes {
				t.Errorf("%d indexes are kept", len(x.kept))
			}
		})
	}
}
