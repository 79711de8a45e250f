// Package approvals finds out whether a revision of a source has the approvals that PullRequestReviews enforce.
//
// In go a source and the revision that it has; out comes why that is not to be applied yet. What a revision needs, and who gave it, is
// for the loop of PullRequestReviews to find out; this package reads what that loop wrote, and writes nothing.
package approvals

import (
	"context"
	"fmt"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/refusals"
	"github.com/flotilla-io/flotilla/sources/git"
)

// ReasonMissing says that a revision lacks an approval.
const ReasonMissing = refusals.ApprovalMissing

// quiet is for how long nothing is said of a revision that no review has looked at: most need nothing, which is known soon.
const quiet = 10 * time.Second

// Revision is what a source has.
type Revision struct {
	Of   inventory.Source
	Name string
	// Age is how long it has had it.
	Age time.Duration
}

// Await returns an error of class loop.ClassWaiting with ReasonMissing for a revision that lacks an approval. Where that is not known
// yet, it returns after which time to ask again instead. Hub reads from a cache. Whoever waits is woken by a change of the status
// of a PullRequestReview.
func Await(ctx context.Context, hub client.Reader, r Revision, retry time.Duration) (again time.Duration, err error) {
	if r.Of.Kind != sourcev1.GitRepositoryKind {
		return 0, nil
	}
	var list gitopsv1alpha1.PullRequestReviewList
	if err := hub.List(ctx, &list, client.InNamespace(r.Of.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("list the PullRequestReviews of the source %s: %w", r.Of, err)
	}
	for i := range list.Items {
		review := &list.Items[i]
		if !review.Spec.Enforce || review.Spec.SourceRef.Name != r.Of.Name {
			continue
		}
		why, known := lacks(review, r.Name)
		switch {
		case why == "":
		case !known && r.Age < quiet:
			again = quiet - r.Age
		default:
			return 0, loop.Waiting(ReasonMissing, retry, fmt.Errorf("%s; the PullRequestReview %s/%s holds revision %s until then%s", why, review.Namespace, review.Name, r.Name, how(review)))
		}
	}
	return again, nil
}

// lacks says what a revision lacks, empty for nothing, and whether the review has looked at it.
func lacks(review *gitopsv1alpha1.PullRequestReview, name string) (why string, known bool) {
	revision, err := git.ParseRevision(name)
	if err != nil {
		return fmt.Sprintf("it is no commit: %v", err), true
	}
	commit, enforced := revision.Checksum, review.Status.Enforced
	switch {
	case enforced == nil || enforced.ApprovedCommit != commit && (enforced.Held == nil || enforced.Held.Commit != commit):
		return "nobody has looked at it yet", false
	case enforced.ApprovedCommit == commit:
		return "", true
	}
	return enforced.Held.Message, true
}

// how says how a revision that is held is let go; empty where nobody has looked at it.
func how(review *gitopsv1alpha1.PullRequestReview) string {
	if review.Status.Enforced == nil || review.Status.Enforced.Held == nil {
		return ""
	}
	return fmt.Sprintf(": revert it, have it approved where the forge takes that after a merge, or set the annotation %s there to %s", gitopsv1alpha1.ApprovedCommitAnnotation, review.Status.Enforced.Held.Commit)
}

// SourceOf returns the source whose pull requests are reviewed.
func SourceOf(review client.Object) inventory.Source {
	out := inventory.Source{Kind: sourcev1.GitRepositoryKind}
	if r, is := review.(*gitopsv1alpha1.PullRequestReview); is {
		out.ObjectKey = client.ObjectKey{Namespace: r.Namespace, Name: r.Spec.SourceRef.Name}
	}
	return out
}

// Changed passes changes of what is held.
func Changed() predicate.Predicate {
	enforces := func(o client.Object) bool {
		r, is := o.(*gitopsv1alpha1.PullRequestReview)
		return is && r.Spec.Enforce
	}
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // nothing is let go by it
		DeleteFunc: func(e event.DeleteEvent) bool { return enforces(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, was := e.ObjectOld.(*gitopsv1alpha1.PullRequestReview)
			after, is := e.ObjectNew.(*gitopsv1alpha1.PullRequestReview)
			return was && is && (before.Spec.Enforce != after.Spec.Enforce || !equality.Semantic.DeepEqual(before.Status.Enforced, after.Status.Enforced))
		},
	}
}
