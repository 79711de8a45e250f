package propagation

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// IndexKeys returns the keys under which an index holds p, by what p may select.
func IndexKeys(p policyv1alpha1.Policy) []string {
	selectors := p.PropagationSpec().ResourceSelectors
	keys := make([]string, 0, len(selectors))
	for i := range selectors {
		for _, key := range selector.IndexKeys(&selectors[i]) {
			if key = p.GetNamespace() + "/" + key; !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// lookupKeys returns the keys of every policy that may select r.
func lookupKeys(r selector.Resource) []string {
	own := selector.LookupKeys(r)
	keys := make([]string, 0, 2*len(own))
	for _, key := range own {
		keys = append(keys, "/"+key)
		if r.Namespace != "" {
			keys = append(keys, r.Namespace+"/"+key)
		}
	}
	return keys
}

// Candidates returns the policies that may select r, each once, from an index
// that returns the policies under one of LookupKeys.
func Candidates(r selector.Resource, find func(key string) ([]policyv1alpha1.Policy, error)) ([]policyv1alpha1.Policy, error) {
	var out []policyv1alpha1.Policy
	for _, key := range lookupKeys(r) {
		found, err := find(key)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			// A policy may be under several keys; one with a single selector is
			// under one of r's keys only, which saves the search.
			if len(p.PropagationSpec().ResourceSelectors) == 1 || !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// Index finds policies by what they may select. Use NewIndex; it is safe for
// use by several goroutines as long as the policies are not changed.
type Index struct {
	under map[string][]policyv1alpha1.Policy
}

// NewIndex returns an index of all policies.
func NewIndex(all []policyv1alpha1.Policy) Index {
	index := Index{under: map[string][]policyv1alpha1.Policy{}}
	for _, p := range all {
		for _, key := range IndexKeys(p) {
			index.under[key] = append(index.under[key], p)
		}
	}
	return index
}

// Candidates returns the policies that may select r.
func (i Index) Candidates(r selector.Resource) []policyv1alpha1.Policy {
	// The index cannot fail.
	out, _ := Candidates(r, func(key string) ([]policyv1alpha1.Policy, error) { return i.under[key], nil })
	return out
}

// Directory finds the Case of any template where all policies and overrides are
// known. Use NewDirectory; it is safe for use by several goroutines as long as
// policies and overrides are not changed.
type Directory struct {
	index     Index
	owners    map[PolicyRef]policyv1alpha1.Policy
	overrides map[[2]string]bool
	skip      SkipRules
}

// NewDirectory returns the directory of all policies and overrides.
func NewDirectory(policies []policyv1alpha1.Policy, overrides []policyv1alpha1.Override, skip SkipRules) *Directory {
	d := &Directory{index: NewIndex(policies), owners: map[PolicyRef]policyv1alpha1.Policy{}, overrides: map[[2]string]bool{}, skip: skip}
	for _, p := range policies {
		d.owners[RefOf(p)] = p
	}
	for _, o := range overrides {
		if o.GetDeletionTimestamp() == nil {
			d.overrides[[2]string{o.GetNamespace(), o.GetName()}] = true
		}
	}
	return d
}

// Case returns the input of Decide for template.
func (d *Directory) Case(template *unstructured.Unstructured) Case {
	c := Case{
		Template:    template,
		Candidates:  d.index.Candidates(selector.ResourceOf(template)),
		HasOverride: func(namespace, name string) bool { return d.overrides[[2]string{namespace, name}] },
		Skip:        d.skip,
	}
	if ref, ok := Claimed(template); ok {
		c.Owner = d.owners[ref]
	}
	return c
}
