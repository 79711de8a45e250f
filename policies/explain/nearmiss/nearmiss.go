// Package nearmiss explains why policies that seem to be meant for an object do
// not select it.
//
// In go policies and an object; out come sentences, and the policy that does not
// select the object for a typing mistake only. It decides nothing: what a policy
// selects is up to package selector.
package nearmiss

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Why returns why a policy does not select a resource of a kind that it is about;
// empty for a policy that is about other kinds.
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

// miss returns in what one selector differs from the resource: it changes one
// field after the other to the selector's, until they match.
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

// Nearest returns the policy that needs the fewest corrections of typing mistakes
// to select a resource, the first of several by namespace and name; nil where no
// policy is near.
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
