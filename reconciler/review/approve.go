package review

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/review"
	"github.com/flotilla-io/flotilla/sources/forge"
)

// askedApproval is what was so when the forge was asked who approves of a pull request.
type askedApproval struct {
	of gitopsv1alpha1.ReviewSubject
	// updated is when something last happened to the pull request, as the forge wrote it.
	updated string
	// again says that it was asked twice since: what happens in the same second leaves that time as it is.
	again bool
	at    time.Time
}

// mostTrusted is for how long it counts who approved: who is in a team may change without anything that happens to a pull request.
const mostTrusted = 10 * time.Minute

// approver finds out who approves of pull requests.
type approver struct{ clock clock.PassiveClock }

// approve asks who approves of the pull requests that need it, and tells them what they wait for. An approval counts for the head
// that it was given for; while the forge does not say, what it said of that head before stays.
func (a approver) approve(ctx context.Context, s *state) (loop.Next, error) {
	teams := teamsOf{forge: s.forge, known: map[string]bool{}}
	for i, p := range s.pulls {
		entry := &s.object.Status.PullRequests[i]
		settled := entry.Phase == gitopsv1alpha1.ReviewPassed || entry.Phase == gitopsv1alpha1.ReviewAwaiting
		if !settled || len(entry.Approvals) == 0 || entry.Of == nil || ctx.Err() != nil {
			continue
		}
		if a.isDue(s, p, *entry.Of) && !s.faults.limited() {
			by, err := teams.approvers(ctx, p, entry.Approvals)
			if err != nil {
				s.faults.add(classify(fmt.Errorf("pull request %d: %w", p.Number, err), s.interval()))
			} else {
				entry.Approvals = review.Give(entry.Approvals, p.Author, by)
				s.asked(p, *entry.Of, a.clock.Now())
			}
		}
		s.conclude(ctx, entry)
	}
	return loop.Next{}, nil
}

// conclude tells a pull request what it waits for, or that it passes.
func (s *state) conclude(ctx context.Context, entry *gitopsv1alpha1.ReviewedPullRequest) {
	if len(review.Missing(entry.Approvals)) > 0 {
		entry.Phase = gitopsv1alpha1.ReviewAwaiting
		s.tell(ctx, entry, gitopsv1alpha1.CommitPending, toldOf(entry))
		return
	}
	if s.tell(ctx, entry, gitopsv1alpha1.CommitSuccess, entry.Message) {
		entry.Phase = gitopsv1alpha1.ReviewPassed
	}
}

// isDue reports whether the forge is asked who approves: something happened since, or it is long ago.
func (a approver) isDue(s *state, p forge.PullRequest, of gitopsv1alpha1.ReviewSubject) bool {
	last, known := s.now.approvals[p.Number]
	return !known || last.of != of || last.updated != p.Updated || !last.again || a.clock.Since(last.at) >= mostTrusted
}

// asked keeps that the forge was asked.
func (s *state) asked(p forge.PullRequest, of gitopsv1alpha1.ReviewSubject, now time.Time) {
	last, known := s.now.approvals[p.Number]
	again := known && last.of == of && last.updated == p.Updated
	s.now.approvals[p.Number] = askedApproval{of: of, updated: p.Updated, again: again, at: now}
}

// teamsOf finds out who is in teams, each once in a pass.
type teamsOf struct {
	forge Forge
	known map[string]bool
}

// approvers returns who approves of a pull request at its head, with those of the teams which it needs.
func (t teamsOf) approvers(ctx context.Context, p forge.PullRequest, needed []gitopsv1alpha1.NeededApproval) ([]review.Approver, error) {
	found, err := t.forge.Approvers(ctx, p.Number, p.Head)
	if err != nil {
		return nil, err
	}
	var out []review.Approver
	for _, who := range found {
		one := review.Approver{Login: who.Login}
		for _, need := range needed {
			for _, team := range need.Teams {
				key := team + " " + who.Login
				is, known := t.known[key]
				if !known {
					if is, err = t.forge.InTeam(ctx, team, who); err != nil {
						return nil, fmt.Errorf("team %s: %w", team, err)
					}
					t.known[key] = is
				}
				if is {
					one.Teams = append(one.Teams, team)
				}
			}
		}
		out = append(out, one)
	}
	return out, nil
}
