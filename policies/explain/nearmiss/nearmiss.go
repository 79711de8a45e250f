// Package nearmiss says why policies that seem to mean an object do not select it.
//
// In go policies and what is to be selected; out come words for people, and the policy that
// a typing mistake keeps from it. It decides nothing: what selects is for package selector to say.
package nearmiss

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Why says what keeps a policy that is about a resource's kind from selecting it; empty for a
// policy that is about others.
func Why(p policyv1alpha1.Policy, r selector.Resource) string {
	if propagation.OnlyByName(p, r) {
		return propagation.OwnWhy
	}
	for _, s := range p.PropagationSpec().ResourceSelectors {
		if s.Kind != r.Kind {
			continue
		}
		if why := miss(s, r); why != "" {
			return why
		}
	}
	return ""
}

// miss says in what one selector differs from the resource, by asking what
// else it would have to be.
func miss(s policyv1alpha1.ResourceSelector, r selector.Resource) string {
	as := r
	as.APIVersion = s.APIVersion
	if selector.Match(s, as) != selector.None {
		return fmt.Sprintf("selects it as %s, it is %s", s.APIVersion, r.APIVersion)
	}
	if s.APIVersion != r.APIVersion {
		return ""
	}
	as = r
	as.Namespace = s.Namespace
	if s.Namespace != "" && s.Namespace != r.Namespace {
		if selector.Match(s, as) == selector.None {
			return ""
		}
		return fmt.Sprintf("selects %s in namespace %s", s.Kind, s.Namespace)
	}
	if s.Name != "" {
		return fmt.Sprintf("selects the %s named %s", s.Kind, s.Name)
	}
	return fmt.Sprintf("selects %s with labels %s", s.Kind, metav1.FormatLabelSelector(s.LabelSelector))
}

// Nearest is the policy in whose selectors the fewest typing mistakes keep it from selecting
// a resource, the first of several by its namespace and name; nil where none is near.
func Nearest(policies []policyv1alpha1.Policy, r selector.Resource) policyv1alpha1.Policy {
	var best policyv1alpha1.Policy
	least := 0
	for _, p := range policies {
		if p.GetNamespace() != "" && p.GetNamespace() != r.Namespace {
			continue
		}
		for _, s := range p.PropagationSpec().ResourceSelectors {
			n, near := propagation.Near(s, r)
			if near && (best == nil || n < least || n == least && before(p, best)) {
				best, least = p, n
			}
		}
	}
	return best
}

func before(a, b policyv1alpha1.Policy) bool {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName())) < 0
}
