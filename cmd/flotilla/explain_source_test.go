package main

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestAnExplanationKnowsWhatIsInGit: what is on the control plane may be older than what is in Git. Labels that only
// say whose an object is are no evidence.
func TestAnExplanationKnowsWhatIsInGit(t *testing.T) {
	web := &unstructured.Unstructured{}
	web.SetAPIVersion("apps/v1")
	web.SetKind("Deployment")
	web.SetNamespace("shop")
	web.SetName("web")
	web.SetLabels(inventory.OwnerLabels(client.ObjectKey{Namespace: "team", Name: "app"}))
	source := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet"}}
	source.Status.Artifact = &meta.Artifact{Revision: "main@sha1:2222222222222222222222222222222222222222"}
	for name, tc := range map[string]struct {
		owned []inventory.Entry
		want  []string
	}{
		"its Kustomization is suspended": {owned: []inventory.Entry{{ID: inventory.IDOf(web), Version: "v1"}}, want: []string{"KustomizationSuspended", "Unhealthy"}},
		"it is of none":                  {want: []string{"Unhealthy"}},
	} {
		t.Run(name, func(t *testing.T) {
			ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}}
			ks.Spec = kustomizev1.KustomizationSpec{Suspend: true, SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: "fleet"}}
			ks.Status = kustomizev1.KustomizationStatus{LastAppliedRevision: "main@sha1:1111111111111111111111111111111111111111", Inventory: inventory.Record(tc.owned)}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(ks, source).Build()
			var got []string
			for _, p := range behind(t.Context(), hub, web, explain.Explanation{Problems: []explain.Problem{{Reason: "Unhealthy"}}}).Problems {
				got = append(got, p.Reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
