package overview

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
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestWhatLeftGitComesFromNoCommit: a template that Git has no more, and that stays, is in no file of the commit that
// removed it.
func TestWhatLeftGitComesFromNoCommit(t *testing.T) {
	const revision = "main@sha1:170884f"
	blog := &unstructured.Unstructured{}
	blog.SetAPIVersion("apps/v1")
	blog.SetKind("Deployment")
	blog.SetNamespace("journal")
	blog.SetName("blog")
	owner := client.ObjectKey{Namespace: "team", Name: "web"}
	blog.SetLabels(inventory.OwnerLabels(owner))
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name}}
	ks.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: "repo"}
	ks.Status.LastAppliedRevision, ks.Status.LastAttemptedRevision = revision, revision
	ks.Status.Inventory = inventory.Record([]inventory.Entry{{ID: inventory.IDOf(blog), Version: "v1"}})
	ks.Status.History = meta.History{{Digest: "sha256:0"}}
	inventory.RecordLeaving(&ks.Status, []inventory.ID{inventory.IDOf(blog)}, nil, true)
	repo := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: "repo"}}
	repo.Status.Artifact = &meta.Artifact{Revision: revision, Digest: "sha256:0"}
	tr := &tracer{reader: reader{fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(ks, repo).Build()}}
	if err := tr.origin(t.Context(), blog); err != nil {
		t.Fatal(err)
	}
	if tr.out.Commit != nil || tr.out.File != nil {
		t.Errorf("it comes from %v, %v", tr.out.Commit, tr.out.File)
	}
	want := []string{"It has left the files of Kustomization team/web, as of revision " + revision + ", and stays for now. flotilla explain deployment/blog -n journal says why."}
	if diff := cmp.Diff(want, tr.out.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}
