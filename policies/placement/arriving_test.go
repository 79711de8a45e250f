package placement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

func TestDefinition(t *testing.T) {
	type outcome struct {
		Name string
		Some bool
	}
	cases := map[string]struct {
		resource schema.GroupResource
		want     outcome
	}{
		"a kind of one's own":         {schema.GroupResource{Group: "shop.example.io", Resource: "carts"}, outcome{"carts.shop.example.io-customresourcedefinition", true}},
		"a built-in one has none":     {schema.GroupResource{Group: "apps", Resource: "deployments"}, outcome{}},
		"one of the core has none":    {schema.GroupResource{Resource: "pods"}, outcome{}},
		"a built-in group with a dot": {schema.GroupResource{Group: "networking.k8s.io", Resource: "ingresses"}, outcome{"ingresses.networking.k8s.io-customresourcedefinition", true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, some := placement.Definition(tc.resource)
			if diff := cmp.Diff(tc.want, outcome{got, some}); diff != "" {
				t.Errorf("definition (-want +got):\n%s", diff)
			}
		})
	}
}

// TestArriving: clusters that a definition goes to serve its kind, and nothing
// else, in the snapshot that comes out alone.
func TestArriving(t *testing.T) {
	var clusters []*clusterv1alpha1.Cluster
	for _, name := range []string{"m1", "m2", "m3"} {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionTrue}}
		clusters = append(clusters, c)
	}
	clusters[0].Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "shop.example.io/v1", Resources: []clusterv1alpha1.APIResource{{Kind: "Cart"}}}}
	cart := workv1alpha2.ObjectReference{APIVersion: "shop.example.io/v1", Kind: "Cart", Name: "big"}
	definition := func(edit func(*workv1alpha2.ClusterResourceBinding)) workv1alpha2.Binding {
		b := &workv1alpha2.ClusterResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "carts.shop.example.io"},
			Clusters: []workv1alpha2.TargetCluster{{Name: "m1"}, {Name: "m2"}, {Name: "gone"}},
		}}
		edit(b)
		return b
	}
	cases := map[string]struct {
		definition workv1alpha2.Binding
		asked      workv1alpha2.ObjectReference
		want       []string
	}{
		"no definition":           {nil, cart, []string{"m1"}},
		"a definition on its way": {definition(func(*workv1alpha2.ClusterResourceBinding) {}), cart, []string{"m1", "m2"}},
		"one that others need there": {definition(func(b *workv1alpha2.ClusterResourceBinding) {
			b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Name: "x", Clusters: []workv1alpha2.TargetCluster{{Name: "m3"}}}}
		}), cart, []string{"m1", "m2", "m3"}},
		"one that is being deleted": {definition(func(b *workv1alpha2.ClusterResourceBinding) {
			b.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}), cart, []string{"m1"}},
		"the binding of something else": {definition(func(b *workv1alpha2.ClusterResourceBinding) { b.Spec.Resource.Kind = "ClusterRole" }), cart, []string{"m1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := placement.NewSnapshot(clusters)
			result, err := placement.Place(request(tc.asked), before.Arriving(tc.definition, &tc.asked), placement.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range result.Clusters {
				got = append(got, c.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
			untouched, err := placement.Place(request(tc.asked), before, placement.Options{})
			if err != nil || len(untouched.Clusters) != 1 {
				t.Errorf("the snapshot before: %v, %v", untouched.Clusters, err)
			}
		})
	}
}

func request(resource workv1alpha2.ObjectReference) placement.Request {
	return placement.Request{Spec: &workv1alpha2.ResourceBindingSpec{Resource: resource, Placement: &policyv1alpha1.Placement{}}}
}
