package commitstatus_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/lineage"
	"github.com/flotilla-io/flotilla/policies/provenance"
)

// fetched has the source at a revision.
func (w *world) fetched(revision string) {
	w.t.Helper()
	source := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fleet"}}
	source.Spec = sourcev1.GitRepositorySpec{URL: "https://git.example.com/acme/fleet", Interval: metav1.Duration{Duration: time.Hour}}
	err := w.Hub.Get(w.t.Context(), client.ObjectKeyFromObject(source), source)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		w.create(source)
	}
	source.Status.Artifact = &meta.Artifact{
		Revision: revision, Path: "p", URL: "http://127.0.0.1/a", Digest: "sha256:" + strings.Repeat("0", 64), LastUpdateTime: metav1.Now(),
	}
	if err := w.Hub.Status().Update(w.t.Context(), source); err != nil {
		w.t.Fatal(err)
	}
	w.seen(source)
}

// applies makes a Kustomization without objects, if there is none, and has it say that it applied a revision,
// and since which one that is the same.
func (w *world) applies(name, revision, since string) {
	w.t.Helper()
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	ks.Spec = kustomizev1.KustomizationSpec{
		Interval: metav1.Duration{Duration: time.Hour}, SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: "fleet"},
	}
	err := w.Hub.Get(w.t.Context(), client.ObjectKeyFromObject(ks), ks)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		w.create(ks)
	}
	ks.Status.LastAttemptedRevision, ks.Status.LastAppliedRevision = revision, revision
	ks.Status.History = meta.History{{
		Digest: "sha256:" + since, FirstReconciled: metav1.Now(), LastReconciled: metav1.Now(), LastReconciledStatus: meta.ReconciliationSucceededReason,
		Metadata: map[string]string{"revision": revision, gitopsv1alpha1.ChangedKey: since},
	}}
	apimeta.SetStatusCondition(&ks.Status.Conditions, metav1.Condition{
		Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: meta.ReconciliationSucceededReason, Message: "Applied revision: " + revision,
	})
	if err := w.Hub.Status().Update(w.t.Context(), ks); err != nil {
		w.t.Fatal(err)
	}
}

// depends has a Kustomization depend on others, and returns on which it did.
func (w *world) depends(ks *kustomizev1.Kustomization, names ...string) (before []string) {
	w.t.Helper()
	if err := w.Hub.Get(w.t.Context(), client.ObjectKeyFromObject(ks), ks); err != nil {
		w.t.Fatal(err)
	}
	for _, ref := range ks.Spec.DependsOn {
		before = append(before, ref.Name)
	}
	ks.Spec.DependsOn = nil
	for _, name := range names {
		ks.Spec.DependsOn = append(ks.Spec.DependsOn, kustomizev1.DependencyReference{Name: name})
	}
	if err := w.Hub.Update(w.t.Context(), ks); err != nil {
		w.t.Fatal(err)
	}
	return before
}

// ends waits until the last posts to the forge, under contexts with the prefix, are as wanted, and returns all posts.
func (w *world) ends(f *forgeServer, context, want string) []string {
	w.t.Helper()
	var messages []string
	w.until("told last "+want, func() (bool, string) {
		messages = slices.DeleteFunc(f.posts(), func(s string) bool {
			return strings.HasPrefix(s, "flotilla/") != strings.HasPrefix(context, "flotilla/")
		})
		return len(messages) > 0 && messages[len(messages)-1] == context+want, strings.Join(messages, "\n")
	})
	return messages
}

// TestASourceIsSummedUp: a commit has one status for all that apply it, and of one that changes nothing of a
// Kustomization nothing more is told than that.
func TestASourceIsSummedUp(t *testing.T) {
	w := newWorld(t)
	f := newForge(t)
	w.fetched(first)
	w.applies("docs", first, first)
	w.applies("web", first, first)
	w.provider("forge", f.URL)
	w.ends(f, "flotilla/fleet ", "1111 success: 2 ready")

	w.fetched(second)
	w.ends(f, "flotilla/fleet ", "2222 pending: 2 to be tried")
	w.applies("docs", second, first)
	w.applies("web", second, second)
	w.ends(f, "flotilla/fleet ", "2222 success: 1 unchanged, 1 ready")
	got := w.ends(f, "", "2222 success: applied 0 objects on the control plane, none of which goes to a cluster")
	ofSecond := slices.DeleteFunc(got, func(s string) bool { return !strings.HasPrefix(s, "2222 ") })
	if diff := cmp.Diff([]string{"2222 success: applied 0 objects on the control plane, none of which goes to a cluster"}, ofSecond); diff != "" {
		t.Errorf("told of Kustomizations, of the second commit (-want +got):\n%s", diff)
	}

	web := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"}}
	before := w.depends(web, "doc")
	w.ends(f, "flotilla/fleet ", "2222 pending: 1 waits for doc, which does not exist (did you mean docs?), 1 unchanged")
	w.depends(web, before...)
	w.ends(f, "flotilla/fleet ", "2222 success: 1 unchanged, 1 ready")

	source := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fleet"}}
	if err := w.Hub.Delete(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	w.until("the sum is gone", func() (bool, string) {
		for _, cs := range w.statuses() {
			if cs.Spec.SourceRef != nil {
				return false, cs.Name
			}
		}
		return true, ""
	})
}

// TestACommitThatIsNotVerified: a commit that its source does not take fails, and the one that was taken before stays as it was.
func TestACommitThatIsNotVerified(t *testing.T) {
	w := newWorld(t)
	f := newForge(t)
	w.fetched(first)
	w.applies("web", first, first)
	w.provider("forge", f.URL)
	w.ends(f, "flotilla/fleet ", "1111 success: 1 ready")
	source := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fleet"}}
	if err := w.Hub.Get(t.Context(), client.ObjectKeyFromObject(source), source); err != nil {
		t.Fatal(err)
	}
	source.Spec.Verification = &sourcev1.GitRepositoryVerification{Mode: sourcev1.ModeGitHEAD, SecretRef: meta.LocalObjectReference{Name: "signers"}}
	if err := w.Hub.Update(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	refusal := provenance.Refusal{Revision: second, Why: "the commit is not signed"}
	source.Status.Conditions = []metav1.Condition{{
		Type: sourcev1.SourceVerifiedCondition, Status: metav1.ConditionFalse, Reason: sourcev1.VerificationError, Message: refusal.Message(), LastTransitionTime: metav1.Now(),
	}}
	if err := w.Hub.Status().Update(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	got := w.ends(f, "flotilla/fleet ", "2222 failure: not verified: the commit is not signed")
	if diff := cmp.Diff([]string{"flotilla/fleet 1111 success: 1 ready", "flotilla/fleet 2222 failure: not verified: the commit is not signed"}, got[len(got)-2:]); diff != "" {
		t.Errorf("told last (-want +got):\n%s", diff)
	}

	// One that does not follow is told in the same way.
	source.Spec.Verification = nil
	if err := w.Hub.Update(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	refused := lineage.Refused{Revision: second, Why: "the history was rewritten"}
	source.Status.Conditions = []metav1.Condition{{
		Type: meta.ReadyCondition, Status: metav1.ConditionFalse, Reason: lineage.ReasonRewritten, Message: refused.Message(), LastTransitionTime: metav1.Now(),
	}}
	if err := w.Hub.Status().Update(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	w.ends(f, "flotilla/fleet ", "2222 failure: held back: the history was rewritten")
}

// TestASumHasOneVoice: Providers of one repository report its source as one, and a namespace that comes later has
// a name of its own there.
func TestASumHasOneVoice(t *testing.T) {
	w := newWorld(t)
	f := newForge(t)
	w.fetched(first)
	w.applies("docs", first, first)
	w.applies("web", first, first)
	w.provider("forge", f.URL)
	w.ends(f, "flotilla/fleet ", "1111 success: 2 ready")
	w.create(&notificationv1beta3.Provider{
		ObjectMeta: metav1.ObjectMeta{Name: "alone"},
		Spec:       notificationv1beta3.ProviderSpec{Type: "gitea", Address: f.URL + "/acme/fleet.git", SecretRef: &meta.LocalObjectReference{Name: "forge"}},
	})
	w.create(&notificationv1beta3.Alert{
		ObjectMeta: metav1.ObjectMeta{Name: "alone"},
		Spec: notificationv1beta3.AlertSpec{
			ProviderRef: meta.LocalObjectReference{Name: "alone"}, EventSources: []notificationv1.CrossNamespaceObjectReference{{Kind: "Kustomization", Name: "web"}},
		},
	})
	w.until("the other Provider is told of its Kustomization", func() (bool, string) {
		list := w.statuses()
		return len(list) == 4, fmt.Sprint(len(list))
	})
	w.fetched(second)
	w.applies("web", second, second)
	w.applies("docs", second, second)
	messages := w.ends(f, "flotilla/fleet ", "2222 success: 2 ready")
	if early := slices.Index(messages, "flotilla/fleet 2222 success: 1 ready"); early >= 0 {
		t.Errorf("one of two told for both:\n%s", strings.Join(messages, "\n"))
	}

	later := newWorld(t)
	later.fetched(second)
	later.applies("mine", second, second)
	later.provider("forge", f.URL)
	later.ends(f, "flotilla/"+later.namespace+"/fleet ", "2222 success: 1 ready")
	own := slices.DeleteFunc(f.posts(), func(s string) bool { return !strings.HasPrefix(s, "flotilla/fleet ") })
	if last := own[len(own)-1]; last != "flotilla/fleet 2222 success: 2 ready" {
		t.Errorf("the later namespace told for the earlier one: %s", last)
	}
}
