package cascadingdeletion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestWhatClustersKeep: clusters keep a claim that is deleted here if its policy preserves it and the revision does not
// write policies.
func TestWhatClustersKeep(t *testing.T) {
	claim := inventory.Entry{ID: inventory.ID{Namespace: "shop", Name: "data", GroupKind: volumeClaimKind}, Version: "v1"}
	carried := func(preserves *bool) *workv1alpha2.ResourceBinding {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: workv1alpha2.BindingName("PersistentVolumeClaim", "data")}}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"}
		b.Spec.PreserveResourcesOnDeletion = preserves
		propagation.ClaimOf(&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "web"},
		}}).Set(b)
		return b
	}
	released, along, other := carried(ptr.To(true)), carried(ptr.To(true)), carried(ptr.To(true))
	propagation.Unclaim(released)
	along.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "web-deployment"}}
	other.Spec.Resource.APIVersion = "example.com/v1"
	for name, tc := range map[string]struct {
		binding *workv1alpha2.ResourceBinding
		by      Revision
		want    []inventory.ID
	}{
		"its policy preserves it":                {binding: carried(ptr.To(true)), want: []inventory.ID{claim.ID}},
		"its policy does not":                    {binding: carried(ptr.To(false))},
		"its policy does not say":                {binding: carried(nil)},
		"the revision writes policies":           {binding: carried(ptr.To(true)), by: Revision{Places: true}},
		"no policy carries it any more":          {binding: released},
		"it goes along with a workload":          {binding: along},
		"it is another kind's that is preserved": {binding: other},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Counter{hub: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.binding).Build()}
			got, err := c.Of(t.Context(), []inventory.Entry{claim}, tc.by)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]inventory.Loss{{ID: claim.ID, Precious: true, Preserved: tc.want}}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhichClaimsOfOthersClustersKeep: of the claims in a deleted namespace, clusters keep those whose policies
// preserve them.
func TestWhichClaimsOfOthersClustersKeep(t *testing.T) {
	claimed := func(name string, preserves bool) *workv1alpha2.ResourceBinding {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: workv1alpha2.BindingName("PersistentVolumeClaim", name)}}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: name}
		b.Spec.PreserveResourcesOnDeletion = ptr.To(preserves)
		propagation.ClaimOf(&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "web"},
		}}).Set(b)
		return b
	}
	titles := []string{"ConfigMap web", "PersistentVolumeClaim a", "PersistentVolumeClaim b", "PersistentVolumeClaim c", "Secret data"}
	for name, tc := range map[string]struct {
		by   Revision
		want found
	}{
		"policies stand as they are":   {want: found{all: 5, claims: 2, kept: 1}},
		"the revision writes policies": {by: Revision{Places: true}, want: found{all: 5, claims: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Counter{hub: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(claimed("a", true), claimed("b", false)).Build()}
			got, err := c.foundIn(t.Context(), "shop", titles, tc.by)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("found %+v, want %+v", got, tc.want)
			}
		})
	}
}
