package commitstatus

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
)

// TestAddressesOfOthersAreNotReported: a status goes to, and names, the repository of a
// source that the Kustomization may use, and no other.
func TestAddressesOfOthersAreNotReported(t *testing.T) {
	const address = "https://git.example.com/secret/plan"
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(&sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: "theirs", Name: "plan"}, Spec: sourcev1.GitRepositorySpec{URL: address},
	}).Build()
	cases := map[string]struct {
		namespace string
		allowed   bool
		want      string
	}{
		"one's own":                    {namespace: "theirs", want: address},
		"another's":                    {namespace: "shop"},
		"another's, where that is let": {namespace: "shop", allowed: true, want: address},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := New(hub, nil, nil, Options{AllowCrossNamespace: tc.allowed})
			got, err := r.alerts.sourceURL(t.Context(), &kustomizev1.Kustomization{
				ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "shop"},
				Spec:       kustomizev1.KustomizationSpec{SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Namespace: "theirs", Name: "plan"}},
			}, "forge")
			if err != nil || got != tc.want {
				t.Errorf("address = %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
