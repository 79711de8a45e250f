package review

import (
	"context"
	"fmt"
	"slices"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/sources/forge"
)

// reviewable reports whether a pull request is looked at.
func (s *state) reviewable(p forge.PullRequest) bool { return s.refused[p.Number] == "" }

// Why pull requests of forks are not looked at.
const (
	notForks  = "from a fork, which is not reviewed: push it to a branch of the repository itself"
	unknownBy = "from a fork, and it cannot be found out now who has set the label"
	noWriter  = "from a fork: the label was set by somebody who may not write to the repository"
	otherHead = "from a fork, with another head: who may write to the repository sets the label again"
)

// allow finds out which pull requests of forks are looked at: everybody can open one, with any content.
func allow(ctx context.Context, s *state) (loop.Next, error) {
	s.refused = map[int64]string{}
	var next loop.Next
	for i, p := range s.pulls {
		if !p.Fork {
			continue
		}
		entry := &s.object.Status.PullRequests[i]
		why := s.allowed(ctx, p, entry)
		if s.refused[p.Number] = why; why == noWriter || why == otherHead {
			next.After = soon // once the label is gone, it can be set anew
		}
	}
	return next, nil
}

// allowed returns why a pull request of a fork is not looked at; empty if it is. The label counts for the head at which the pull
// request was seen without it: by it, somebody who may write says that he has looked at that very head.
func (s *state) allowed(ctx context.Context, p forge.PullRequest, entry *gitopsv1alpha1.ReviewedPullRequest) string {
	label := s.object.Spec.ForkLabel
	switch {
	case label == "":
		entry.AwaitedHead, entry.AllowedHead = "", ""
		return notForks
	case !slices.Contains(p.Labels, label):
		entry.AwaitedHead, entry.AllowedHead = p.Head, ""
		return fmt.Sprintf("from a fork: it is reviewed once somebody who may write to the repository sets the label %s", label)
	case entry.AllowedHead == p.Head:
		return ""
	case entry.AwaitedHead != p.Head:
		entry.AllowedHead = ""
		s.unlabel(ctx, p)
		return otherHead
	}
	by, err := s.forge.LabelledByWriter(ctx, p.Number, label)
	switch {
	case err != nil:
		s.faults.add(classify(fmt.Errorf("pull request %d: %w", p.Number, err), s.interval()))
		return unknownBy
	case !by:
		s.unlabel(ctx, p)
		return noWriter
	}
	entry.AllowedHead = p.Head
	return ""
}

func (s *state) unlabel(ctx context.Context, p forge.PullRequest) {
	if err := s.forge.Unlabel(ctx, p.Number, s.object.Spec.ForkLabel); err != nil {
		s.faults.add(classify(fmt.Errorf("pull request %d: %w", p.Number, err), s.interval()))
	}
}
