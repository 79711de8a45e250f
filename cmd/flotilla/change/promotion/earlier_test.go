package promotion_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/change/promotion"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// carry does what the loops do with the templates that the hub has: the policy, if there is
// one, claims them, they get bindings, and the member's objects the fleet's labels.
func carry(t *testing.T, hub, member client.Client) {
	t.Helper()
	policy := &policyv1alpha1.PropagationPolicy{}
	err := hub.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-7fd7ff5bf5"}, policy)
	if apierrors.IsNotFound(err) {
		return
	}
	policy.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "own"}
	err = errors.Join(err, hub.Update(t.Context(), policy))
	for _, template := range []client.Object{deployment(nil), settings("")} {
		if hub.Get(t.Context(), client.ObjectKeyFromObject(template), template) == nil {
			err = errors.Join(err, carryOne(t.Context(), hub, member, template, policy))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func carryOne(ctx context.Context, hub, member client.Client, template client.Object, policy policyv1alpha1.Policy) error {
	gvk, err := hub.GroupVersionKindFor(template)
	if err != nil {
		return err
	}
	live := template.DeepCopyObject().(client.Object)
	propagation.ClaimOf(policy).Set(template)
	binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: workv1alpha2.BindingName(gvk.Kind, template.GetName()),
		Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "of-" + template.GetName()},
	}}
	err = errors.Join(hub.Update(ctx, template), client.IgnoreAlreadyExists(hub.Create(ctx, binding)), member.Get(ctx, client.ObjectKeyFromObject(live), live))
	live.SetLabels(map[string]string{
		workv1alpha2.ManagedByKarmadaLabel: "true",
		workv1alpha2.WorkPermanentIDLabel:  plan.WorkID("of-"+template.GetName(), "east"),
	})
	return errors.Join(err, member.Update(ctx, live))
}

// items lists what is promoted, with + if the hub does not have it yet.
func items(p *promotion.Promotion) []string {
	var out []string
	for _, item := range p.Items {
		of := promotion.Object{GroupVersionKind: item.Template.GroupVersionKind(), Namespace: item.Template.GetNamespace(), Name: item.Template.GetName()}.String()
		if !item.There {
			of = "+" + of
		}
		out = append(out, of)
	}
	return out
}

// TestAPromotionThatIsCutOffAnywhereIsFinishedByTheNext, whatever the loops have done
// meanwhile; and once all is there, it is found done.
func TestAPromotionThatIsCutOffAnywhereIsFinishedByTheNext(t *testing.T) {
	type try struct {
		Items       []string
		PolicyThere bool
		Notes       []string
	}
	all := []string{"+Deployment shop/web", "+ConfigMap shop/settings"}
	for name, tc := range map[string]struct {
		writes int
		next   try
	}{
		"before the policy":     {0, try{Items: all}},
		"after the policy":      {1, try{Items: all, PolicyThere: true}},
		"after what it needs":   {2, try{Items: []string{"+Deployment shop/web", "ConfigMap shop/settings"}, PolicyThere: true}},
		"after everything else": {3, try{Items: []string{"Deployment shop/web", "ConfigMap shop/settings"}, PolicyThere: true}},
	} {
		for loops, carried := range map[string]func(*testing.T, client.Client, client.Client){
			"before the loops saw it": func(*testing.T, client.Client, client.Client) {},
			"while the member does not know yet": func(t *testing.T, hub, _ client.Client) {
				carry(t, hub, side(interceptor.Funcs{}, deployment(nil), settings("blue")))
			},
			"when it is carried": carry,
		} {
			t.Run(name+", "+loops, func(t *testing.T) {
				writes, most := 0, tc.writes
				hub := side(interceptor.Funcs{
					Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
						if _, loop := obj.(*workv1alpha2.ResourceBinding); !loop {
							if writes++; writes > most {
								return errCut
							}
						}
						return c.Create(ctx, obj, opts...)
					},
					Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return errCut },
				}, namespace(), cluster())
				member := side(interceptor.Funcs{}, namespace(), deployment(nil), settings("blue"))
				planned, err := promotion.Plan(t.Context(), web, options(hub, member))
				if err != nil {
					t.Fatal(err)
				}
				if err := planned.Carry(t.Context()); tc.writes < 3 && !errors.Is(err, errCut) {
					t.Fatalf("it is not cut off: %v", err)
				}
				carried(t, hub, member)
				next, err := promotion.Plan(t.Context(), web, options(hub, member))
				if err != nil {
					t.Fatalf("the next: %v", err)
				}
				if diff := cmp.Diff(tc.next, try{items(next), next.PolicyThere, next.Notes}); diff != "" {
					t.Errorf("the next (-want +got):\n%s", diff)
				}
				most = 1 << 20
				if err := next.Carry(t.Context()); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{"Deployment web overwrite", "ConfigMap settings overwrite", "PropagationPolicy web-7fd7ff5bf5"}, contents(t, hub)); diff != "" {
					t.Errorf("the hub holds (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestWhatOthersCarryIsNotOfAnEarlierPromotion: it is left out or refused, as if there were no
// policy of the name.
func TestWhatOthersCarryIsNotOfAnEarlierPromotion(t *testing.T) {
	const (
		another = "PropagationPolicy shop/web-7fd7ff5bf5 is there already and says something else: --policy-name names another"
		managed = "Deployment shop/web in cluster east is managed by a fleet already (Work ): flotilla explain says by what"
	)
	relabel := func(t *testing.T, c client.Client, obj client.Object, key, value string) {
		t.Helper()
		err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
		labels := obj.GetLabels()
		labels[key] = value
		obj.SetLabels(labels)
		if err := errors.Join(err, c.Update(t.Context(), obj)); err != nil {
			t.Fatal(err)
		}
	}
	change := func(t *testing.T, hub client.Client, change func(*policyv1alpha1.PropagationSpec)) {
		t.Helper()
		policy := &policyv1alpha1.PropagationPolicy{}
		err := hub.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-7fd7ff5bf5"}, policy)
		change(&policy.Spec)
		if err := errors.Join(err, hub.Update(t.Context(), policy)); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		whole bool // the object itself is carried, too
		then  func(t *testing.T, hub, member client.Client)
		says  string
	}{
		"another fleet manages what it needs": {
			then: func(t *testing.T, _, member client.Client) {
				relabel(t, member, settings(""), workv1alpha2.WorkPermanentIDLabel, "another")
			}, says: another,
		},
		"another policy carries what it needs": {
			then: func(t *testing.T, hub, _ client.Client) {
				relabel(t, hub, settings(""), policyv1alpha1.PropagationPolicyPermanentIDLabel, "another")
			}, says: another,
		},
		"the policy goes to more clusters by now": {
			then: func(t *testing.T, hub, _ client.Client) {
				change(t, hub, func(s *policyv1alpha1.PropagationSpec) {
					s.Placement.ClusterAffinity.ClusterNames = []string{"east", "west"}
				})
			}, says: another,
		},
		"the policy does not name what it needs": {
			then: func(t *testing.T, hub, _ client.Client) {
				change(t, hub, func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors = s.ResourceSelectors[:1] })
			},
		},
		"another fleet manages the object": {
			whole: true, then: func(t *testing.T, _, member client.Client) {
				relabel(t, member, deployment(nil), workv1alpha2.WorkPermanentIDLabel, "another")
			}, says: managed,
		},
		"the object is carried by a policy that names less": {
			whole: true, then: func(t *testing.T, hub, _ client.Client) {
				change(t, hub, func(s *policyv1alpha1.PropagationSpec) { s.PropagateDeps = false })
			}, says: managed,
		},
		"the object needs something that the policy does not name": {
			whole: true, then: func(t *testing.T, hub, _ client.Client) {
				change(t, hub, func(s *policyv1alpha1.PropagationSpec) {
					s.ResourceSelectors = append(s.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "more"})
				})
			}, says: managed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub := side(interceptor.Funcs{}, namespace(), cluster())
			member := side(interceptor.Funcs{}, namespace(), deployment(nil), settings("blue"))
			planned, err := promotion.Plan(t.Context(), web, options(hub, member))
			if err != nil {
				t.Fatal(err)
			}
			if err := planned.Carry(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !tc.whole {
				if err := hub.Delete(t.Context(), deployment(nil)); err != nil {
					t.Fatal(err)
				}
			}
			carry(t, hub, member)
			tc.then(t, hub, member)
			_, err = promotion.Plan(t.Context(), web, options(hub, member))
			if got := messageOf(err); got != tc.says {
				t.Errorf("error %q, want %q", got, tc.says)
			}
		})
	}
}
