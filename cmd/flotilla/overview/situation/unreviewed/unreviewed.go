// Package unreviewed finds PullRequestReviews that do not tell pull requests what their merge does.
//
// In go a situation and the control plane, which it reads; out comes the situation with a note on each of them. It writes nothing.
package unreviewed

import (
	"context"

	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// With adds a note for each PullRequestReview that is not ready, and is not suspended. Who may not read them, and a control plane
// without them, has none.
func With(ctx context.Context, hub client.Reader, within client.ListOption, fleet situation.Fleet) (situation.Fleet, error) {
	err := listing.Each(ctx, hub, &gitopsv1alpha1.PullRequestReviewList{}, func(r *gitopsv1alpha1.PullRequestReview) {
		ready := apimeta.FindStatusCondition(r.Status.Conditions, meta.ReadyCondition)
		if ready == nil || ready.Status != metav1.ConditionFalse || r.Spec.Suspend {
			return
		}
		fleet.Notes = append(fleet.Notes, situation.Note{
			Kind: gitopsv1alpha1.PullRequestReviewKind, Namespace: r.Namespace, Name: r.Name,
			Message: "pull requests are not told what their merge does: " + ready.Reason + ": " + excerpt.Line(ready.Message),
			Next:    "mend what it says; it is tried again by itself: flotilla describe pullrequestreview " + r.Name + wording.InNamespace(r.Namespace),
		})
	}, within)()
	if err != nil && !apierrors.IsForbidden(err) && !apimeta.IsNoMatchError(err) {
		return situation.Fleet{}, err
	}
	return fleet, nil
}
