package override_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// randomOverride returns one of few names with selectors of few values, so that
// many of them meet.
func randomOverride(r *rand.Rand) policyv1alpha1.Override {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	meta := metav1.ObjectMeta{Namespace: one("", "shop", "bank"), Name: fmt.Sprint("o", r.IntN(20))}
	if r.IntN(10) == 0 {
		meta.DeletionTimestamp = &metav1.Time{}
	}
	var spec policyv1alpha1.OverrideSpec
	for range r.IntN(3) {
		s := policyv1alpha1.ResourceSelector{APIVersion: one("v1", "apps/v1"), Kind: one("ConfigMap", "Deployment"), Namespace: one("", "", "shop"), Name: one("", "", "a", "b")}
		switch r.IntN(4) {
		case 0:
			s.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": one("a", "b")}}
		case 1:
			s.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: "app", Operator: metav1.LabelSelectorOperator(one("In", "NotIn", "Near")), Values: []string{one("a", "b")},
			}}}
		}
		spec.ResourceSelectors = append(spec.ResourceSelectors, s)
	}
	if meta.Namespace == "" {
		return &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: meta, Spec: spec}
	}
	return &policyv1alpha1.OverridePolicy{ObjectMeta: meta, Spec: spec}
}

// TestIndex: the index finds what looking at every override finds, in the same
// order, whatever came and went before.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var index override.Index
	there := map[string]policyv1alpha1.Override{}
	found := 0
	for range 5000 {
		o := randomOverride(r)
		if key := o.GetNamespace() + "/" + o.GetName(); r.IntN(3) == 0 {
			index.Remove(o)
			delete(there, key)
		} else {
			index.Set(o)
			there[key] = o
		}
		var all []policyv1alpha1.Override
		for _, o := range there {
			all = append(all, o)
		}
		resource := selector.Resource{
			APIVersion: []string{"v1", "apps/v1"}[r.IntN(2)], Kind: []string{"ConfigMap", "Deployment"}[r.IntN(2)],
			Namespace: []string{"", "shop", "bank"}[r.IntN(3)], Name: []string{"a", "b", "c"}[r.IntN(3)],
			Labels: map[string]string{"app": []string{"a", "b", "c"}[r.IntN(3)]},
		}
		want, got := names(override.Sorted(all, resource)), names(index.Of(resource))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("overrides of %+v (-looking at all +index):\n%s", resource, diff)
		}
		found += len(got)
	}
	if found < 1000 {
		t.Errorf("only %d overrides were found: the test shows nothing", found)
	}
}

func names(overrides []policyv1alpha1.Override) []string {
	out := []string{}
	for _, o := range overrides {
		out = append(out, o.GetNamespace()+"/"+o.GetName())
	}
	return out
}

// BenchmarkIndex finds the overrides of one of 10,000 templates among 1,000
// overrides: a tenth of them for a whole kind by labels, the others by name.
func BenchmarkIndex(b *testing.B) {
	var index override.Index
	for i := range 1000 {
		s := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: fmt.Sprint("web-", i*10)}
		if i%10 == 0 {
			s.Name, s.LabelSelector = "", &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(i)}}
		}
		meta := metav1.ObjectMeta{Namespace: fmt.Sprint("ns-", i%50), Name: fmt.Sprint("o-", i)}
		index.Set(&policyv1alpha1.OverridePolicy{ObjectMeta: meta, Spec: policyv1alpha1.OverrideSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{s}}})
	}
	i, found := 0, 0
	for b.Loop() {
		found += len(index.Of(selector.Resource{
			APIVersion: "apps/v1", Kind: "Deployment", Namespace: fmt.Sprint("ns-", i/10%50), Name: fmt.Sprint("web-", i),
			Labels: map[string]string{"app": fmt.Sprint(i % 1000)},
		}))
		i = (i + 1) % 10_000
	}
	if found == 0 {
		b.Error("nothing was found")
	}
}

// BenchmarkIndexOneKind is the worst case: 1,000 overrides select one kind in
// one namespace by label expressions.
func BenchmarkIndexOneKind(b *testing.B) {
	var index override.Index
	for i := range 1000 {
		s := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{fmt.Sprint(i)}}},
		}}
		meta := metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("o-", i)}
		index.Set(&policyv1alpha1.OverridePolicy{ObjectMeta: meta, Spec: policyv1alpha1.OverrideSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{s}}})
	}
	r := selector.Resource{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", Labels: map[string]string{"app": "7"}}
	for b.Loop() {
		if n := len(index.Of(r)); n != 1 {
			b.Fatalf("found %d", n)
		}
	}
}
