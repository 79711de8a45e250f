package apply_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/apply/approvals"
)

// enforcing returns a review of the source that enforces approvals.
func (w *world) enforcing() *gitopsv1alpha1.PullRequestReview {
	review := &gitopsv1alpha1.PullRequestReview{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fleet"}}
	review.Spec = gitopsv1alpha1.PullRequestReviewSpec{
		SourceRef: gitopsv1alpha1.ReviewedSource{Name: "fleet"}, ProviderRef: gitopsv1alpha1.LocalReference{Name: "forge"}, Interval: metav1.Duration{Duration: time.Minute}, Enforce: true,
		Approvals: []gitopsv1alpha1.ReviewApproval{{Name: "production", By: gitopsv1alpha1.ReviewApprovers{Users: []string{"ann"}}}},
	}
	w.create(review)
	return review
}

// approved writes how far the source has its approvals, as the loop of reviews does.
func (w *world) approved(review *gitopsv1alpha1.PullRequestReview, revision, held string) {
	w.t.Helper()
	commit := func(revision string) string { return strings.TrimPrefix(revision, "main@sha1:") }
	before := review.DeepCopy()
	review.Status.Enforced = &gitopsv1alpha1.EnforcedApprovals{ApprovedCommit: commit(revision)}
	if held != "" {
		review.Status.Enforced.Held = &gitopsv1alpha1.HeldCommit{Commit: commit(held), PullRequest: 7, Message: "pull request 7 awaits production: ann"}
	}
	if err := w.Hub.Status().Patch(w.t.Context(), review, client.MergeFrom(before)); err != nil {
		w.t.Fatal(err)
	}
	w.seen(review)
}

// TestARevisionWithoutItsApproval is held, while drift of the one before is corrected, until it has it.
func TestARevisionWithoutItsApproval(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"app/config.yaml": configMaps(2), "other/config.yaml": named("o")})
	w.kustomization("web", eachSecond)
	w.kustomization("other", in("./other"))
	w.ready("web", first)
	w.ready("other", first)
	review := w.enforcing()
	w.approved(review, first, "")
	second := w.commit(map[string]string{"app/config.yaml": configMaps(3), "db/config.yaml": named("a"), "other/config.yaml": named("o"), "elsewhere/config.yaml": named("x")})
	if message := w.awaitReason("web", second, approvals.ReasonMissing); !strings.Contains(message, "nobody has looked at it yet; the PullRequestReview "+w.namespace+"/fleet holds revision "+second+" until then") {
		t.Errorf("before anybody looked: %s", message)
	}
	w.approved(review, first, second)
	want := "pull request 7 awaits production: ann; the PullRequestReview " + w.namespace + "/fleet holds revision " + second + " until then: revert it, " +
		"have it approved where the forge takes that after a merge, or set the annotation gitops.flotilla.io/approved-commit there to " + strings.TrimPrefix(second, "main@sha1:")
	w.until("it is said what is awaited", func() (bool, string) {
		message := w.awaitReason("web", second, approvals.ReasonMissing)
		return message == want, message
	})
	w.drifts()
	w.restored("while it is held")
	if got := w.number("config-02"); got != "" {
		t.Fatalf("something of what is held is applied: %s", got)
	}
	w.kustomization("new", in("./db"))
	w.awaitReason("new", second, approvals.ReasonMissing)
	w.ready("other", second) // it changes nothing there
	w.change("other", in("./elsewhere"))
	w.awaitReason("other", second, approvals.ReasonMissing)
	w.change("other", in("./other"))
	w.approved(review, second, "")
	w.ready("web", second)

	third := w.commit(map[string]string{"app/config.yaml": configMaps(4), "db/config.yaml": named("a"), "other/config.yaml": named("o")})
	w.awaitReason("web", third, approvals.ReasonMissing)
	if err := w.Hub.Delete(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	w.ready("web", third)
}
