package commitstatus

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
)

// TestAnArtifactNamesNoForge: where a Provider has no address, the source's counts if that is a repository. What an artifact says of
// where it is from never does: whoever pushed it would get the token.
func TestAnArtifactNamesNoForge(t *testing.T) {
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team", Name: name} }
	provider := func(address string) *notificationv1beta3.Provider {
		return &notificationv1beta3.Provider{ObjectMeta: at("forge"), Spec: notificationv1beta3.ProviderSpec{Type: "gitea", Address: address}}
	}
	alert := &notificationv1beta3.Alert{ObjectMeta: at("all"), Spec: notificationv1beta3.AlertSpec{
		ProviderRef: meta.LocalObjectReference{Name: "forge"}, EventSources: []notificationv1.CrossNamespaceObjectReference{{Kind: "Kustomization", Name: "*"}},
	}}
	repository := &sourcev1.GitRepository{ObjectMeta: at("fleet"), Spec: sourcev1.GitRepositorySpec{URL: "https://git.test/fleet"}}
	artifact := &sourcev1.OCIRepository{ObjectMeta: at("fleet"), Spec: sourcev1.OCIRepositorySpec{URL: "oci://registry.test/fleet"}}
	artifact.Status.Artifact = &meta.Artifact{Metadata: map[string]string{"org.opencontainers.image.source": "https://eve.test/fleet"}}
	for name, tc := range map[string]struct {
		kind, address string
		want, fault   string
	}{
		"of a repository, with an address":   {kind: "GitRepository", address: "https://forge.test/a", want: "https://forge.test/a"},
		"of a repository, without one":       {kind: "GitRepository", want: "https://git.test/fleet"},
		"of an artifact, with an address":    {kind: "OCIRepository", address: "https://forge.test/a", want: "https://forge.test/a"},
		"of an artifact, without one":        {kind: "OCIRepository", fault: "no commit is told of to the Provider forge, as OCIRepository team/fleet is no Git repository: name the repository of its commits in spec.address of the Provider"},
		"of a kind that nobody follows here": {kind: "Bucket"},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(provider(tc.address), alert, repository, artifact).Build()
			ks := &kustomizev1.Kustomization{ObjectMeta: at("web"), Spec: kustomizev1.KustomizationSpec{SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: tc.kind, Name: "fleet"}}}
			targets, fault, err := alerts{hub: hub}.targets(t.Context(), ks)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(targets) > 0 {
				got = targets[0].repository
			}
			message := ""
			if fault != nil {
				message = fault.Error()
			}
			if got != tc.want || message != tc.fault {
				t.Errorf("%q, %q, want %q, %q", got, message, tc.want, tc.fault)
			}
		})
	}
}
