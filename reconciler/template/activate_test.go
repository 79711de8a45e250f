package template

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

func lazy(p *policyv1alpha1.PropagationPolicy) *policyv1alpha1.PropagationPolicy {
	p.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	return p
}

// older is a template that was created before the policies of this test, with a claim.
func older(claim propagation.Claim) *unstructured.Unstructured {
	obj := web(claim)
	obj.SetCreationTimestamp(metav1.NewTime(noon))
	return obj
}

// TestWaiting decides about a template under a Lazy policy, and lists what would
// be written: the claim's annotation, the binding, and the event.
func TestWaiting(t *testing.T) {
	p := lazy(policy("p", "apps/v1"))
	p.CreationTimestamp = metav1.NewTime(noon.AddDate(0, 0, 1))
	edition, err := propagation.Edition(older(propagation.Claim{}))
	if err != nil {
		t.Fatal(err)
	}
	noted := func(note string) propagation.Claim { return propagation.Activation{Note: note}.Claim(p) }
	// placed is the binding that another policy left.
	placed := func() workv1alpha2.Binding {
		s := state{key: key(), template: older(propagation.ClaimOf(policy("q"))), policy: policy("q")}
		if _, err := binderFor(2, nil, "m1").run(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
		s.desired.(*workv1alpha2.ResourceBinding).Spec.Placement = &policyv1alpha1.Placement{}
		return s.desired
	}
	type outcome struct {
		Claimed, Bound bool
		Note, Holder   string
		Reported       string
	}
	cases := map[string]struct {
		template *unstructured.Unstructured
		binding  workv1alpha2.Binding
		want     outcome
	}{
		"an older template is claimed and waits": {
			template: older(propagation.Claim{}),
			want:     outcome{Claimed: true, Note: edition, Reported: "ApplyPolicySucceed: Claimed by policy shop/p, which is Lazy: it takes effect with the next change of the template."},
		},
		"it goes on waiting": {template: older(noted(edition)), want: outcome{Note: edition}},
		"its user has edited it": {
			template: older(noted("another")),
			want:     outcome{Claimed: true, Bound: true, Holder: "shop/p", Reported: "ApplyPolicySucceed: Carried by policy shop/p."},
		},
		"its binding follows it from another policy, as it is": {
			template: older(propagation.ClaimOf(policy("q"))), binding: placed(),
			want: outcome{Claimed: true, Bound: true, Note: edition, Holder: "shop/p", Reported: "ApplyPolicySucceed: Claimed by policy shop/p, which is Lazy: it takes effect with the next change of the template."},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := state{key: key(), template: tc.template, binding: tc.binding, policy: p}
			if _, err := loop.Run(t.Context(), &s, claim, binderFor(2, nil, "m1", "m2").run); err != nil {
				t.Fatal(err)
			}
			s.claimed = s.claim != nil
			got := outcome{Claimed: s.claimed, Bound: s.desired != nil, Note: s.template.GetAnnotations()[propagation.WaitsAnnotation]}
			if s.desired != nil {
				ref, _ := propagation.Claimed(s.desired)
				got.Holder = ref.String()
			}
			if n, some := s.carriedNow(s.desired != nil); some {
				got.Reported = n.Reason + ": " + n.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if tc.binding != nil {
				if diff := cmp.Diff(tc.binding.BindingSpec(), s.desired.BindingSpec()); diff != "" {
					t.Errorf("the binding must stay as it is (-before +after):\n%s", diff)
				}
			}
		})
	}
}

// TestSize: the size and priority of a template in its binding.
func TestSize(t *testing.T) {
	parts := []workv1alpha2.Component{{Name: "head", Replicas: 1}}
	broken := errors.New("unreadable")
	components := func(known bool, err error) func(*unstructured.Unstructured) ([]workv1alpha2.Component, bool, error) {
		return func(*unstructured.Unstructured) ([]workv1alpha2.Component, bool, error) { return parts, known, err }
	}
	priority := func(value int32, found bool, err error) func(context.Context, string) (int32, bool, error) {
		return func(context.Context, string) (int32, bool, error) { return value, found, err }
	}
	type outcome struct {
		Replicas int32
		Parts    int
		Priority *int32
		Reason   string
	}
	cases := map[string]struct {
		edit func(b *binder)
		want outcome
	}{
		"replicas":                              {func(*binder) {}, outcome{Replicas: 2}},
		"parts instead of replicas":             {func(b *binder) { b.components = components(true, nil) }, outcome{Parts: 1}},
		"a kind that has no parts":              {func(b *binder) { b.components = components(false, nil) }, outcome{Replicas: 2}},
		"parts that cannot be read":             {func(b *binder) { b.components = components(false, broken) }, outcome{Reason: workv1alpha2.EventReasonGetComponentsFailed}},
		"a priority":                            {func(b *binder) { b.priority = priority(7, true, nil) }, outcome{Replicas: 2, Priority: ptr.To[int32](7)}},
		"a priority that is 0":                  {func(b *binder) { b.priority = priority(0, true, nil) }, outcome{Replicas: 2, Priority: ptr.To[int32](0)}},
		"a PriorityClass that does not exist":   {func(b *binder) { b.priority = priority(0, false, nil) }, outcome{Reason: policyv1alpha1.EventReasonApplyPolicyFailed}},
		"a PriorityClass that cannot be looked": {func(b *binder) { b.priority = priority(0, false, broken) }, outcome{Reason: "plain"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := policy("p", "apps/v1")
			p.Spec.SchedulePriority = &policyv1alpha1.SchedulePriority{PriorityClassName: "high"}
			b := binderFor(2, nil, "m1")
			tc.edit(&b)
			s := state{key: key(), template: web(propagation.ClaimOf(p)), policy: p}
			_, err := b.run(t.Context(), &s)
			var got outcome
			if e := loop.As(err, "plain"); e != nil {
				got.Reason = e.Reason
			} else {
				spec := s.desired.BindingSpec()
				got.Replicas, got.Parts = spec.Replicas, len(spec.Components)
				if spec.SchedulePriority != nil {
					got.Priority = &spec.SchedulePriority.Priority
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// BenchmarkCandidates looks up, in the indexes of the informers, which of 1,000
// policies carries a template, and decides.
func BenchmarkCandidates(b *testing.B) {
	indexer := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{bySelector: selectorKeys})
	for i := range 1000 {
		p := policy(fmt.Sprint("p", i), "apps/v1")
		p.Spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("app-", i)}}
		if err := indexer.Add(p); err != nil {
			b.Fatal(err)
		}
	}
	c := catalog{indexers: []toolscache.Indexer{indexer, toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{bySelector: selectorKeys})}}
	template := web(propagation.Claim{})
	template.SetLabels(map[string]string{"app": "app-7", "tier": "front", "team": "a"})
	b.ReportAllocs()
	for b.Loop() {
		candidates, err := c.candidates(selector.ResourceOf(template))
		if err != nil {
			b.Fatal(err)
		}
		if d := propagation.Decide(propagation.Case{Template: template, Candidates: candidates}); d.Policy == nil || d.Policy.GetName() != "p7" {
			b.Fatalf("carried by %v", d.Policy)
		}
	}
}
