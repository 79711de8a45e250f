package controlplane_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// TestNothingOfANewControlPlaneIsATemplate: policies that mean all of every kind carry nothing that
// a control plane makes before anybody wrote to it, but for what each namespace has and for the
// definitions that people carry to clusters.
func TestNothingOfANewControlPlaneIsATemplate(t *testing.T) {
	env, err := servertest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	asked, err := discovery.NewDiscoveryClientForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := asked.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	all := &policyv1alpha1.ClusterPropagationPolicy{}
	all.Name, all.Labels = "all", map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "1"}
	var objects []unstructured.Unstructured
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || !slices.Contains(resource.Verbs, "watch") {
				continue
			}
			all.Spec.ResourceSelectors = append(all.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: list.GroupVersion, Kind: resource.Kind})
			found := &unstructured.UnstructuredList{}
			found.SetGroupVersionKind(schema.FromAPIVersionAndKind(list.GroupVersion, resource.Kind+"List"))
			if err := env.Hub.List(t.Context(), found); err != nil {
				t.Fatal(err)
			}
			objects = append(objects, found.Items...)
		}
	}
	var got []string
	for i := range objects {
		r := selector.ResourceOf(&objects[i])
		if propagation.Propagates(r, propagation.DefaultSkipRules()) && propagation.Selects(all, r) {
			got = append(got, r.Kind+" "+client.ObjectKeyFromObject(&objects[i]).String())
		}
	}
	slices.Sort(got)
	want := []string{
		"CustomResourceDefinition /serviceexports.multicluster.x-k8s.io", "CustomResourceDefinition /serviceimports.multicluster.x-k8s.io",
		"ServiceAccount default/default",
	}
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("templates among %d objects (-want +got):\n%s", len(objects), diff)
	}
}
