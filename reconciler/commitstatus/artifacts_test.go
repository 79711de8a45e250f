package commitstatus_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// packed has the OCIRepository at an artifact that says of which commit it was packed; empty for nothing.
func (w *world) packed(revision, origin string) {
	w.t.Helper()
	source := &sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fleet"}}
	source.Spec = sourcev1.OCIRepositorySpec{URL: "oci://registry.example.com/acme/fleet", Interval: metav1.Duration{Duration: time.Hour}}
	err := w.Hub.Get(w.t.Context(), client.ObjectKeyFromObject(source), source)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		w.create(source)
	}
	source.Status.Artifact = &meta.Artifact{
		Revision: revision, Path: "p", URL: "http://127.0.0.1/a", Digest: "sha256:" + strings.Repeat("0", 64), LastUpdateTime: metav1.Now(),
		Metadata: map[string]string{"org.opencontainers.image.source": "https://elsewhere.example.com/eve/fleet"},
	}
	if origin != "" {
		source.Status.Artifact.Metadata["org.opencontainers.image.revision"] = origin
	}
	if err := w.Hub.Status().Update(w.t.Context(), source); err != nil {
		w.t.Fatal(err)
	}
	w.seen(source)
}

// unpacks makes a Kustomization of the OCIRepository, if there is none, and has it say that it tried an artifact, and whether it
// applied that, and since which one that is the same.
func (w *world) unpacks(name, revision, since, origin, sinceOrigin string, applied bool) {
	w.t.Helper()
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	ks.Spec = kustomizev1.KustomizationSpec{
		Interval: metav1.Duration{Duration: time.Hour}, SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.OCIRepositoryKind, Name: "fleet"},
	}
	err := w.Hub.Get(w.t.Context(), client.ObjectKeyFromObject(ks), ks)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		w.create(ks)
	}
	ready := metav1.Condition{Type: meta.ReadyCondition, Status: metav1.ConditionFalse, Reason: meta.BuildFailedReason, Message: "no such file"}
	ks.Status.LastAttemptedRevision = revision
	if applied {
		ks.Status.LastAppliedRevision, ks.Status.LastAppliedOriginRevision = revision, origin
		ks.Status.History = meta.History{{
			Digest: "sha256:" + since, FirstReconciled: metav1.Now(), LastReconciled: metav1.Now(), LastReconciledStatus: meta.ReconciliationSucceededReason,
			Metadata: map[string]string{"revision": revision, "originRevision": origin, gitopsv1alpha1.ChangedKey: since, gitopsv1alpha1.ChangedOriginKey: sinceOrigin},
		}}
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, meta.ReconciliationSucceededReason, "Applied revision: "+revision
	}
	apimeta.SetStatusCondition(&ks.Status.Conditions, ready)
	if err := w.Hub.Status().Update(w.t.Context(), ks); err != nil {
		w.t.Fatal(err)
	}
}

// TestAnArtifactIsReportedOnItsCommit: where an artifact says of which commit it was packed, that is the one that is told of it.
func TestAnArtifactIsReportedOnItsCommit(t *testing.T) {
	const success = "success: applied 0 objects on the control plane, none of which goes to a cluster"
	a, b, c := "prod@sha256:"+strings.Repeat("a", 64), "prod@sha256:"+strings.Repeat("b", 64), "prod@sha256:"+strings.Repeat("c", 64)
	w := newWorld(t)
	f := newForge(t)
	w.fetched(first) // of the same name, and applied as well
	w.applies("git", first, first)
	w.packed(a, first)
	w.unpacks("web", a, a, first, first, true)
	w.unpacks("docs", a, a, first, first, true)
	w.provider("forge", f.URL)
	w.ends(f, "", "1111 "+success)
	w.until("both sums are told", func() (bool, string) {
		posts := f.posts()
		return slices.Contains(posts, "flotilla/fleet 1111 success: 1 ready") && slices.Contains(posts, "flotilla/oci:fleet 1111 success: 2 ready"), strings.Join(posts, "\n")
	})

	// The next one changes one of them, and cannot be built by the other at first.
	w.packed(b, second)
	w.ends(f, "flotilla/oci:fleet ", "2222 pending: 2 to be tried")
	w.unpacks("web", b, a, second, first, false)
	w.ends(f, "", "2222 failure: BuildFailed: no such file")
	w.unpacks("docs", b, a, second, first, true)
	w.unpacks("web", b, b, second, second, true)
	w.ends(f, "flotilla/oci:fleet ", "2222 success: 1 unchanged, 1 ready")
	w.ends(f, "", "2222 "+success)
	for _, cs := range w.statuses() {
		want := map[string]string{"docs": first[10:], "web": second[10:]}
		if ref := cs.Spec.KustomizationRef; ref != nil && want[ref.Name] != "" && cs.Spec.Commit != want[ref.Name] {
			t.Errorf("the status of %s is on %s, want %s", ref.Name, cs.Spec.Commit, want[ref.Name])
		}
	}

	// One that says nothing has no commit to tell of.
	w.packed(c, "")
	w.unpacks("web", c, c, "", "", true)
	w.unpacks("docs", c, c, "", "", true)
	w.until("only the repository is told of", func() (bool, string) {
		var names []string
		for _, cs := range w.statuses() {
			if ref := cs.Spec.KustomizationRef; ref != nil {
				names = append(names, ref.Name)
			}
		}
		return cmp.Equal(names, []string{"git"}), strings.Join(names, " ")
	})
	for _, post := range f.posts() {
		if strings.Contains(post, "aaaa") || strings.Contains(post, "bbbb") || strings.Contains(post, "cccc") {
			t.Errorf("a digest was taken for a commit: %s", post)
		}
	}
}
