package propagation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(minutes int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))
}

// lazyCase is a template that was created before the Lazy policy p, and what may
// be stored about the two.
type lazyCase struct {
	template *unstructured.Unstructured
	p        policyv1alpha1.Policy
	binding  workv1alpha2.Binding
}

// edit changes the template as a user does.
func (c *lazyCase) edit() {
	if err := unstructured.SetNestedField(c.template.Object, int64(5), "spec", "replicas"); err != nil {
		panic(err)
	}
}

// claim sets the claim and the note that a reconcile would set.
func (c *lazyCase) claim(t *testing.T) {
	t.Helper()
	a, err := propagation.Activate(c.template, c.p, c.binding)
	if err != nil {
		t.Fatal(err)
	}
	a.Claim(c.p).Set(c.template)
	if a.Waits {
		return
	}
	digest, err := propagation.Digest(c.template)
	if err != nil {
		t.Fatal(err)
	}
	c.binding = &workv1alpha2.ResourceBinding{}
	propagation.Note(c.binding, digest, a.Edition)
}

func TestActivate(t *testing.T) {
	eager := func(c *lazyCase) { c.p.PropagationSpec().ActivationPreference = "" }
	lazy := func(c *lazyCase) { c.p.PropagationSpec().ActivationPreference = policyv1alpha1.LazyActivation }
	younger := func(c *lazyCase) { c.template.SetCreationTimestamp(at(1)) }
	label := func(key string) func(*lazyCase) {
		return func(c *lazyCase) {
			labels := c.template.GetLabels()
			labels[key] = "x"
			c.template.SetLabels(labels)
		}
	}
	changed := func(observed int64, minutes int) func(*lazyCase) {
		return func(c *lazyCase) {
			c.p.SetGeneration(2)
			when := at(minutes)
			c.p.PropagationStatus().ObservedGeneration, c.p.PropagationStatus().ObservedTime = observed, &when
		}
	}
	type steps = []func(*lazyCase)
	claim := (func(*lazyCase))(nil) // stands for a reconcile
	cases := map[string]struct {
		steps steps
		waits bool
	}{
		"a policy that is not Lazy acts":              {steps: steps{eager}},
		"an older template waits":                     {waits: true},
		"and goes on waiting once it is claimed":      {steps: steps{claim}, waits: true},
		"until its user edits it":                     {steps: steps{claim, (*lazyCase).edit}},
		"or the policy is Lazy no more":               {steps: steps{claim, eager}},
		"a label of the user's is an edit":            {steps: steps{claim, label("tier")}},
		"that it opts out of the namespace sync, too": {steps: steps{claim, label(policyv1alpha1.NamespaceSkipAutoPropagationLabel)}},
		"a label of the control plane's is none":      {steps: steps{claim, label("resourcetemplate.karmada.io/retain-replicas")}, waits: true},
		"its status is none":                          {steps: steps{claim, func(c *lazyCase) { c.template.Object["status"] = "up" }}, waits: true},
		"what the server keeps is none":               {steps: steps{claim, func(c *lazyCase) { c.template.SetGeneration(9); c.template.SetResourceVersion("99") }}, waits: true},
		"a template made again is another":            {steps: steps{claim, func(c *lazyCase) { c.template.SetUID("u-2") }}},
		"a younger template does not wait":            {steps: steps{younger}},
		"nor one that is being made":                  {steps: steps{func(c *lazyCase) { c.template.SetCreationTimestamp(metav1.Time{}) }}},
		"nor one that was claimed in the making":      {steps: steps{func(c *lazyCase) { propagation.ClaimOf(c.p).Set(c.template) }}},
		"within a second the version tells: before":   {steps: steps{func(c *lazyCase) { c.template.SetCreationTimestamp(at(0)) }}, waits: true},
		"within a second the version tells: after":    {steps: steps{func(c *lazyCase) { c.template.SetCreationTimestamp(at(0)); c.template.SetResourceVersion("70") }}},
		"once acted on, it waits for the next edit":   {steps: steps{younger, claim}, waits: true},
		"which comes":                     {steps: steps{younger, claim, (*lazyCase).edit}},
		"and is acted on once":            {steps: steps{claim, (*lazyCase).edit, claim}, waits: true},
		"a policy that became Lazy waits": {steps: steps{eager, claim, lazy}, waits: true},
		"for an edit":                     {steps: steps{eager, claim, lazy, (*lazyCase).edit}},
		"a changed policy that nobody has seen yet waits": {steps: steps{younger, changed(1, 0)}, waits: true},
		"a template between two changes of it waits":      {steps: steps{younger, changed(2, 2)}, waits: true},
		"one after the last change does not":              {steps: steps{func(c *lazyCase) { c.template.SetCreationTimestamp(at(3)) }, changed(2, 2)}},
		"taken from another policy, it waits again": {steps: steps{
			func(c *lazyCase) {
				propagation.ClaimOf(policy("shop", "other", byKind)).Set(c.template)
				c.binding = &workv1alpha2.ResourceBinding{}
				propagation.Note(c.binding, "anything", "")
			},
		}, waits: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &lazyCase{template: web(), p: policy("shop", "p", byKind)}
			c.template.SetCreationTimestamp(at(-1))
			c.p.SetCreationTimestamp(at(0))
			c.p.SetResourceVersion("50")
			c.p.SetGeneration(1)
			lazy(c)
			for _, step := range tc.steps {
				if step == nil {
					c.claim(t)
					continue
				}
				step(c)
			}
			got, err := propagation.Activate(c.template, c.p, c.binding)
			if err != nil || got.Waits != tc.waits {
				t.Errorf("activation = %+v, err %v; waits should be %v", got, err, tc.waits)
			}
			if got.Waits && got.Edition != "" {
				t.Errorf("one that waits must not note that it was acted on: %+v", got)
			}
			// What a reconcile writes must not change the result of the next one.
			c.claim(t)
			again, err := propagation.Activate(c.template, c.p, c.binding)
			lazyNow := c.p.PropagationSpec().ActivationPreference == policyv1alpha1.LazyActivation
			if err != nil || again.Waits != lazyNow {
				t.Errorf("after a pass: %+v, err %v; waits should be %v", again, err, lazyNow)
			}
		})
	}
}

// TestFollow checks that a binding gets the claim of another policy while its
// template waits.
func TestFollow(t *testing.T) {
	p := policy("shop", "p", byKind)
	for name, tc := range map[string]struct{ noted, want string }{
		"it was for the template as it was":    {"before", "after"},
		"it was for another state of it":       {"older", "older"},
		"it says nothing of what it stood for": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{Placement: &policyv1alpha1.Placement{}}}
			if tc.noted != "" {
				propagation.Note(b, tc.noted, "edition")
			}
			propagation.Follow(b, p, "before", "after")
			ref, _ := propagation.Claimed(b)
			if diff := cmp.Diff([]any{tc.want, propagation.RefOf(p)}, []any{b.Annotations[propagation.DigestAnnotation], ref}); diff != "" {
				t.Errorf("digest, claim (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFollowLeavesAttachedBindings checks that a binding that exists only for
// others gets no claim, as it would then be placed.
func TestFollowLeavesAttachedBindings(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{RequiredBy: []workv1alpha2.BindingSnapshot{{Name: "x"}}}}
	want := b.DeepCopy()
	propagation.Follow(b, policy("shop", "p", byKind), "before", "after")
	if diff := cmp.Diff(want, b); diff != "" {
		t.Errorf("binding (-want +got):\n%s", diff)
	}
}

func TestDigestOfNotes(t *testing.T) {
	base, err := propagation.Digest(web())
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		edit func(obj *unstructured.Unstructured)
		same bool
	}{
		"a note of what waits, so that Works wait until it is gone": {func(obj *unstructured.Unstructured) {
			obj.SetAnnotations(map[string]string{propagation.WaitsAnnotation: "x"})
		}, false},
		"a status":           {func(obj *unstructured.Unstructured) { obj.Object["status"] = "up" }, true},
		"another annotation": {func(obj *unstructured.Unstructured) { obj.SetAnnotations(map[string]string{"a": "b"}) }, false},
		"a claim":            {func(obj *unstructured.Unstructured) { propagation.ClaimOf(policy("", "p", byKind)).Set(obj) }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := web()
			tc.edit(obj)
			before := obj.DeepCopy()
			got, err := propagation.Digest(obj)
			if err != nil || (got == base) != tc.same {
				t.Errorf("digest %s, was %s, err %v", got, base, err)
			}
			if diff := cmp.Diff(before.Object, obj.Object); diff != "" {
				t.Errorf("the object was changed (-before +after):\n%s", diff)
			}
		})
	}
}
