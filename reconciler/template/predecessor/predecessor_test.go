package predecessor_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/template/predecessor"
)

func cluster(name string, ready metav1.ConditionStatus) client.Object {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{
		{Type: clusterv1alpha1.ClusterConditionReady, Status: ready},
	}}}
}

// work returns a Work of the binding shop/web-deployment in a cluster; leaves says that it is being deleted.
func work(name string, leaves bool, of string) client.Object {
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: workv1alpha2.ExecutionNamespace(name), Name: "web-" + of,
		Annotations: map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotationKey: "shop", workv1alpha2.ResourceBindingNameAnnotationKey: of},
	}}
	if leaves {
		w.DeletionTimestamp, w.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{"test/wait"}
	}
	return w
}

// TestWhereOneOfTheNameLeaves: a template that is created again while clusters have yet to remove it may return to
// those that are not ready.
func TestWhereOneOfTheNameLeaves(t *testing.T) {
	const web = "web-deployment"
	anywhere := &policyv1alpha1.Placement{}
	named := func(names ...string) *policyv1alpha1.Placement {
		return &policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: names}}
	}
	terms := &policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "a", ClusterAffinity: *named("north").ClusterAffinity}, {AffinityName: "b", ClusterAffinity: *named("west").ClusterAffinity},
	}}
	for name, tc := range map[string]struct {
		works     []client.Object
		placement *policyv1alpha1.Placement
		want      []string
	}{
		"none does":                           {placement: anywhere},
		"clusters have yet to remove it":      {works: []client.Object{work("west", true, web), work("east", true, web)}, placement: anywhere, want: []string{"east", "west"}},
		"a cluster that is ready has":         {works: []client.Object{work("north", true, web)}, placement: anywhere},
		"a cluster that is gone has":          {works: []client.Object{work("gone", true, web)}, placement: anywhere},
		"it is another one that leaves":       {works: []client.Object{work("east", true, "other-deployment")}, placement: anywhere},
		"it does not leave":                   {works: []client.Object{work("east", false, web)}, placement: anywhere},
		"its policy means another one now":    {works: []client.Object{work("east", true, web), work("west", true, web)}, placement: named("west", "north"), want: []string{"west"}},
		"a term of its policy means that one": {works: []client.Object{work("east", true, web), work("west", true, web)}, placement: terms, want: []string{"west"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(tc.works, cluster("east", metav1.ConditionFalse), cluster("west", metav1.ConditionUnknown), cluster("north", metav1.ConditionTrue))
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).WithIndex(&workv1alpha1.Work{}, bindings.WorksByOwner, func(obj client.Object) []string {
				key, _ := bindings.OwnerOf(obj.(*workv1alpha1.Work))
				return []string{key.String()}
			}).Build()
			targets, err := predecessor.Clusters(t.Context(), hub, client.ObjectKey{Namespace: "shop", Name: web}, tc.placement)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, target := range targets {
				got = append(got, target.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
