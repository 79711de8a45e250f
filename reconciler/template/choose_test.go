package template

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

var deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// web is a template with the given claim.
func web(claim propagation.Claim) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(deployment)
	obj.SetNamespace("shop")
	obj.SetName("web")
	obj.SetUID("t-1")
	obj.SetResourceVersion("7")
	claim.Set(obj)
	return obj
}

// policy selects Deployments of the name in the given versions.
func policy(name string, apiVersions ...string) *policyv1alpha1.PropagationPolicy {
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name,
		Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-" + name},
	}}
	for _, v := range apiVersions {
		p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: v, Kind: "Deployment"})
	}
	return p
}

func deleted(p *policyv1alpha1.PropagationPolicy) *policyv1alpha1.PropagationPolicy {
	p.DeletionTimestamp = &metav1.Time{Time: noon}
	return p
}

func dependent(p *policyv1alpha1.PropagationPolicy) *policyv1alpha1.PropagationPolicy {
	p.Spec.DependentOverrides = []string{"missing"}
	return p
}

func bindingOf(apiVersion string) workv1alpha2.Binding {
	return &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"},
		Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{
			APIVersion: apiVersion, Kind: "Deployment", Namespace: "shop", Name: "web", UID: "t-1",
		}},
	}
}

func TestChoose(t *testing.T) {
	claimedBy := func(name string) *unstructured.Unstructured { return web(propagation.ClaimOf(policy(name))) }
	leaving := web(propagation.Claim{})
	leaving.SetDeletionTimestamp(&metav1.Time{Time: noon})
	byService := web(propagation.Claim{})
	byService.SetLabels(map[string]string{workv1alpha2.ResourceTemplateClaimedByLabel: "MultiClusterService"})
	system := web(propagation.Claim{})
	system.SetNamespace("karmada-system")

	cases := map[string]struct {
		template *unstructured.Unstructured
		binding  workv1alpha2.Binding
		policies []*policyv1alpha1.PropagationPolicy
		want     string // the policy; "" for none
		done     bool
		reason   string // of the error
	}{
		"nothing selects it":                       {template: web(propagation.Claim{}), done: true},
		"a policy selects it":                      {template: web(propagation.Claim{}), policies: []*policyv1alpha1.PropagationPolicy{policy("p", "apps/v1")}, want: "p"},
		"a claim is kept against a better policy":  {template: claimedBy("z"), policies: []*policyv1alpha1.PropagationPolicy{policy("a", "apps/v1"), policy("z", "apps/v1")}, want: "z"},
		"the holder is gone, another takes over":   {template: claimedBy("gone"), policies: []*policyv1alpha1.PropagationPolicy{policy("p", "apps/v1")}, want: "p"},
		"the holder is gone, nobody takes over":    {template: claimedBy("gone")},
		"the holder goes, another takes over":      {template: claimedBy("p"), policies: []*policyv1alpha1.PropagationPolicy{deleted(policy("p", "apps/v1")), policy("q", "apps/v1")}, want: "q"},
		"the holder selects it no longer":          {template: claimedBy("p"), policies: []*policyv1alpha1.PropagationPolicy{policy("p", "batch/v1")}},
		"the holder carries it in another version": {template: claimedBy("p"), policies: []*policyv1alpha1.PropagationPolicy{policy("p", "apps/v1beta1"), policy("q", "apps/v1")}, done: true},
		"the holder waits for overrides":           {template: claimedBy("p"), policies: []*policyv1alpha1.PropagationPolicy{dependent(policy("p", "apps/v1"))}, want: "p", done: true},
		"the holder goes, the next one waits":      {template: claimedBy("p"), policies: []*policyv1alpha1.PropagationPolicy{deleted(policy("p", "apps/v1")), dependent(policy("q", "apps/v1"))}},
		"a new one waits for overrides":            {template: web(propagation.Claim{}), policies: []*policyv1alpha1.PropagationPolicy{dependent(policy("p", "apps/v1"))}, want: "p", done: true},
		"it is being deleted":                      {template: leaving, policies: []*policyv1alpha1.PropagationPolicy{policy("p", "apps/v1")}, done: true},
		"another owner propagates it":              {template: byService, policies: []*policyv1alpha1.PropagationPolicy{policy("p", "apps/v1")}, done: true},
		"its namespace is reserved":                {template: system, policies: []*policyv1alpha1.PropagationPolicy{policy("p", "apps/v1")}, done: true},
		"its binding's name is taken":              {template: web(propagation.Claim{}), binding: bindingOf("example.com/v1"), policies: []*policyv1alpha1.PropagationPolicy{policy("p", "apps/v1")}, want: "p", reason: policyv1alpha1.EventReasonApplyPolicyFailed},
		"its binding is of another version":        {template: web(propagation.Claim{}), binding: bindingOf("apps/v1beta1"), policies: []*policyv1alpha1.PropagationPolicy{policy("p", "apps/v1")}, want: "p"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := chooser{
				find: func(_ context.Context, ref propagation.PolicyRef) (policyv1alpha1.Policy, bool, error) {
					for _, p := range tc.policies {
						if p.Name == ref.Name && p.Namespace == ref.Namespace {
							return p, true, nil
						}
					}
					return nil, false, nil
				},
				candidates: func(selector.Resource) ([]policyv1alpha1.Policy, error) {
					var out []policyv1alpha1.Policy
					for _, p := range tc.policies {
						out = append(out, p)
					}
					return out, nil
				},
				exists: func(context.Context, string, string) (bool, error) { return false, nil },
			}
			s := state{key: templatestore.Key{GroupVersionKind: deployment, Namespace: "shop", Name: "web"}, template: tc.template, binding: tc.binding}
			next, err := p.run(t.Context(), &s)
			got := ""
			if s.policy != nil {
				got = s.policy.GetName()
			}
			reason := ""
			if e := loop.As(err, "plain"); e != nil {
				reason = e.Reason
			}
			if diff := cmp.Diff([]any{tc.want, tc.done, tc.reason}, []any{got, next.Done, reason}); diff != "" {
				t.Errorf("policy, done, reason (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChooseFailsClosed(t *testing.T) {
	boom := errors.New("boom")
	s := state{key: templatestore.Key{GroupVersionKind: deployment, Namespace: "shop", Name: "web"}, template: web(propagation.ClaimOf(policy("p")))}
	p := chooser{find: func(context.Context, propagation.PolicyRef) (policyv1alpha1.Policy, bool, error) {
		return nil, false, boom
	}}
	if _, err := p.run(t.Context(), &s); !errors.Is(err, boom) || s.policy != nil {
		t.Errorf("a policy that cannot be read: err %v, policy %v; want an error and nothing released", err, s.policy)
	}
}

func TestClaimPatch(t *testing.T) {
	wide := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "wide", Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id-w"}}}
	cases := map[string]struct {
		have, want propagation.Claim
		patch      string
	}{
		"the same claim": {have: propagation.ClaimOf(policy("p")), want: propagation.ClaimOf(policy("p"))},
		"no claim":       {},
		"a first claim":  {want: propagation.ClaimOf(wide), patch: `{"metadata":{"annotations":{"clusterpropagationpolicy.karmada.io/name":"wide"},"labels":{"clusterpropagationpolicy.karmada.io/permanent-id":"id-w"},"uid":"t-1"}}`},
		"a claim of the other scope": {
			have: propagation.ClaimOf(policy("p")), want: propagation.ClaimOf(wide),
			patch: `{"metadata":{"annotations":{"clusterpropagationpolicy.karmada.io/name":"wide","propagationpolicy.karmada.io/name":null,"propagationpolicy.karmada.io/namespace":null},"labels":{"clusterpropagationpolicy.karmada.io/permanent-id":"id-w","propagationpolicy.karmada.io/permanent-id":null},"uid":"t-1"}}`,
		},
		"a release": {
			have:  propagation.ClaimOf(wide),
			patch: `{"metadata":{"annotations":{"clusterpropagationpolicy.karmada.io/name":null},"labels":{"clusterpropagationpolicy.karmada.io/permanent-id":null},"uid":"t-1"}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data, some, err := claimPatch(web(tc.have), tc.want)
			if err != nil || some != (tc.patch != "") {
				t.Fatalf("claimPatch: some %v, err %v", some, err)
			}
			if diff := cmp.Diff(tc.patch, string(data)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}
