package health

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// cached answers lists as a cache without copies does.
type cached struct {
	client.Reader
	policies  []policyv1alpha1.PropagationPolicy
	overrides []policyv1alpha1.OverridePolicy
	clusters  []clusterv1alpha1.Cluster
}

func (c cached) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *policyv1alpha1.PropagationPolicyList:
		l.Items = append(l.Items, c.policies...)
	case *policyv1alpha1.OverridePolicyList:
		l.Items = append(l.Items, c.overrides...)
	case *clusterv1alpha1.ClusterList:
		l.Items = append(l.Items, c.clusters...)
	}
	return nil
}

// ruled returns a control plane with n policies, n overrides and n/10 clusters.
func ruled(n int) cached {
	var out cached
	selectors := func(i int) []policyv1alpha1.ResourceSelector {
		return []policyv1alpha1.ResourceSelector{
			{APIVersion: "apps/v1", Kind: "Deployment", Name: fmt.Sprint("web-", i)}, {APIVersion: "v1", Kind: "Service", Name: fmt.Sprint("web-", i)},
			{APIVersion: "v1", Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("web-", i)}}},
		}
	}
	for i := range n {
		meta := metav1.ObjectMeta{Namespace: fmt.Sprint("team-", i%50), Name: fmt.Sprint("web-", i), UID: types.UID(fmt.Sprint("u", i)), ResourceVersion: fmt.Sprint(i)}
		out.policies = append(out.policies, policyv1alpha1.PropagationPolicy{ObjectMeta: meta, Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: selectors(i)}})
		out.overrides = append(out.overrides, policyv1alpha1.OverridePolicy{ObjectMeta: meta, Spec: policyv1alpha1.OverrideSpec{ResourceSelectors: selectors(i)}})
	}
	for i := range n / 10 {
		out.clusters = append(out.clusters, clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i)}})
	}
	return out
}

// BenchmarkAsked reads what 1,000 policies and overrides ask, as each assessment of a Kustomization with objects in
// clusters does.
func BenchmarkAsked(b *testing.B) {
	hub := ruled(1000)
	r := New(Deps{Hub: hub, Live: hub})
	for b.Loop() {
		policies, err := r.policies(b.Context(), hub)
		if err != nil {
			b.Fatal(err)
		}
		fleet, err := r.fleet(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if _, err := lazily(b.Context(), r, policies, fleet)(); err != nil {
			b.Fatal(err)
		}
	}
}
