// Package decidertest makes clusters and bindings for tests of those that place.
//
// In go names and changes; out come objects as they are on a control plane, and a client
// that knows them. It decides nothing, and no program uses it.
package decidertest

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// Cluster is one that serves Deployments.
func Cluster(name string, change ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": "prod"}},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push},
		Status: clusterv1alpha1.ClusterStatus{APIEnablements: []clusterv1alpha1.APIEnablement{
			{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
		}},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

// Cores gives a cluster so many cores, and pods enough.
func Cores(n int64) func(*clusterv1alpha1.Cluster) {
	return func(c *clusterv1alpha1.Cluster) {
		c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU:  *resource.NewQuantity(n, resource.DecimalSI),
			corev1.ResourcePods: *resource.NewQuantity(10_000, resource.DecimalSI),
		}}
	}
}

// Binding is that of a Deployment of two replicas that goes everywhere.
func Binding(change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-deployment", UID: "b-1", Generation: 1,
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p-1"},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:  workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "t-1"},
			Replicas:  2,
			Placement: &policyv1alpha1.Placement{},
		},
	}
	for _, f := range change {
		f(b)
	}
	return b
}

// Divided asks for replicas of one core each, where they are available.
func Divided(name string, replicas int32, change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	return Binding(append([]func(*workv1alpha2.ResourceBinding){func(b *workv1alpha2.ResourceBinding) {
		b.Name, b.Spec.Resource.Name = name, name
		b.Spec.Replicas = replicas
		b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
		b.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
			WeightPreference:          &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
		}
	}}, change...)...)
}

// Apart keeps a binding away from others of the group.
func Apart(group string) func(*workv1alpha2.ResourceBinding) {
	return func(b *workv1alpha2.ResourceBinding) {
		b.Spec.WorkloadAffinityGroups = &workv1alpha2.WorkloadAffinityGroups{AntiAffinityGroup: group}
		b.Spec.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}
	}
}

// Hub builds a client that knows the objects, by the index of a decider.
func Hub(index func(client.FieldIndexer) error, objects ...client.Object) *fake.ClientBuilder {
	builder := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...)
	if err := index(indexer{builder}); err != nil {
		panic(err) // the builder takes any index
	}
	return builder
}

// indexer adds what is to be indexed to a client that is built.
type indexer struct{ builder *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	i.builder.WithIndex(obj, field, extract)
	return nil
}

// previewer is the decider that Fits asks.
type previewer interface {
	Preview(ctx context.Context, b workv1alpha2.Binding) (placement.Decision, bool, error)
}

// Fits returns how many replicas of one core another binding may have, up to 20.
func Fits(t testing.TB, decider previewer) int64 {
	t.Helper()
	most := int64(0)
	for n := int32(1); n <= 20; n++ {
		decision, _, err := decider.Preview(t.Context(), Divided("probe", n))
		if err != nil {
			t.Fatal(err)
		}
		if decision.Record.Succeeded() {
			most = int64(n)
		}
	}
	return most
}
