package template

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// TestPredict predicts the claim of a scene's template as if it were about to be created.
func TestPredict(t *testing.T) {
	theirs := func(s *scene) *propagation.Claim { c := propagation.ClaimOf(s.p); return &c }
	cases := map[string]struct {
		edit func(s *scene, obj *metav1.ObjectMeta)
		gvk  schema.GroupVersionKind
		want func(s *scene) *propagation.Claim
	}{
		"what a policy selects is claimed": {want: theirs},
		"the policy that wins is the loop's choice": {
			edit: func(s *scene, _ *metav1.ObjectMeta) { s.other.Spec.Priority = ptr.To(int32(1)) },
			want: func(s *scene) *propagation.Claim { c := propagation.ClaimOf(s.other); return &c },
		},
		"what a Lazy policy selects is claimed, and does not wait": {
			edit: func(s *scene, _ *metav1.ObjectMeta) { lazy(s.p) },
			want: theirs,
		},
		"what no policy selects is not": {edit: func(s *scene, obj *metav1.ObjectMeta) {
			obj.Labels = nil
			s.other.Spec.ResourceSelectors[0].Name = "another"
		}},
		"what is another template's copy is not": {edit: func(_ *scene, obj *metav1.ObjectMeta) {
			obj.Labels[workv1alpha2.ResourceTemplateClaimedByLabel] = "x"
		}},
		"what brings a claim is left to the loop": {edit: func(_ *scene, obj *metav1.ObjectMeta) {
			obj.Annotations = map[string]string{policyv1alpha1.PropagationPolicyNameAnnotation: "p"}
		}},
		"what waits for an override is not yet": {edit: func(s *scene, _ *metav1.ObjectMeta) {
			s.p.Spec.DependentOverrides, s.other.Spec.DependentOverrides = []string{"missing"}, []string{"missing"}
		}},
		"kinds that are never propagated are not even looked at": {
			gvk: schema.GroupVersionKind{Version: "v1", Kind: "Event"},
			edit: func(s *scene, _ *metav1.ObjectMeta) {
				s.chooser.candidates = func(selector.Resource) ([]policyv1alpha1.Policy, error) { panic("looked at") }
			},
		},
		"what cannot be decided is left to the loop": {edit: func(s *scene, _ *metav1.ObjectMeta) {
			s.chooser.candidates = func(selector.Resource) ([]policyv1alpha1.Policy, error) {
				return []policyv1alpha1.Policy{s.p}, errors.New("the cache is gone")
			}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			// Of two equal policies the first by name wins; leave p alone in the field.
			s.other.Spec.Priority = ptr.To(int32(-1))
			obj := &metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}}
			if tc.edit != nil {
				tc.edit(s, obj)
			}
			gvk := tc.gvk
			if gvk.Empty() {
				gvk = deployment
			}
			var got *propagation.Claim
			if claim, ok := s.Predict(t.Context(), gvk, obj); ok {
				got = &claim
			}
			var want *propagation.Claim
			if tc.want != nil {
				want = tc.want(s)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("claim (-want +got):\n%s", diff)
			}
		})
	}
}
