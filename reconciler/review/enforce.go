package review

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/review"
	"github.com/flotilla-io/flotilla/reconciler/forecast/rehearsal"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/forge"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/merge"
)

// mostSteps is in how many steps a branch may have come to be what it is since it had its approvals. More are taken for one, which nobody
// has approved of.
const mostSteps = 50

// enforcer finds out up to which commit a source has the approvals that it needs. What it does not know counts as not approved.
type enforcer struct {
	examiner
	deps  Deps
	forge connections
}

// step is one in which a branch came to be what it is: from one commit to another, by a merge or without one.
type step struct {
	review.Step
	from string
	pull forge.PullRequest
}

// judged are the steps from one commit to another.
type judged struct {
	of    subject
	steps []step
}

// subject is what steps are about; they are found out anew once something in it is another.
type subject struct{ approved, now, fleet, terms string }

// enforce finds out whether what the source has is to be applied. It keeps no pull request from being reviewed.
func (e enforcer) enforce(ctx context.Context, s *state) (loop.Next, error) {
	status := &s.object.Status
	if !s.object.Spec.Enforce {
		status.Enforced = nil
		return loop.Next{}, nil
	}
	now, err := git.ParseRevision(revisionOf(s.source))
	if err != nil {
		return loop.Next{}, nil // it has none yet, or nothing that it could be compared by
	}
	commit := now.Checksum
	switch {
	case status.Enforced == nil, status.Enforced.ApprovedCommit == commit, s.object.Annotations[gitopsv1alpha1.ApprovedCommitAnnotation] == commit:
		status.Enforced = &gitopsv1alpha1.EnforcedApprovals{ApprovedCommit: commit}
		return loop.Next{}, nil
	}
	approved := status.Enforced.ApprovedCommit
	steps, err := e.approved(ctx, s, approved, commit)
	if ctx.Err() != nil {
		return loop.Next{}, nil
	}
	next := review.Enforced(approved, commit, steps)
	if err != nil {
		s.faults.add(fmt.Errorf("commit %s: %w", commit, err))
		if next = review.NotJudged(approved, commit, foreign(err)); status.Enforced.Held != nil && status.Enforced.Held.Commit == commit {
			next = *status.Enforced // that it is awaited by somebody stays said
		}
	}
	status.Enforced = &next
	return loop.Next{}, nil
}

// approved returns the steps from one commit to another, with the approvals that they need and that were given.
func (e enforcer) approved(ctx context.Context, s *state, from, to string) ([]review.Step, error) {
	steps, err := e.judge(ctx, s, from, to)
	if err != nil {
		return nil, err
	}
	var out []review.Step
	for _, one := range steps {
		if one.pull.Number > 0 && len(one.Needed) > 0 {
			at, err := e.forge.of(ctx, s.object)
			if err != nil {
				return nil, err
			}
			by, err := teamsOf{forge: at, known: map[string]bool{}}.approvers(ctx, one.pull, one.Needed)
			if err != nil {
				return nil, classify(fmt.Errorf("pull request %d: %w", one.pull.Number, err), s.interval())
			}
			one.Needed = review.Give(one.Needed, one.pull.Author, by)
		}
		out = append(out, one.Step)
		if len(review.Missing(one.Needed)) > 0 {
			return out, nil // what comes after it waits for it
		}
	}
	return out, nil
}

// judge finds out in which steps the source came from one commit to another, and what each of them needs; if all of them together need
// nothing, such as a revert with what it reverts, they are one.
func (e enforcer) judge(ctx context.Context, s *state, from, to string) ([]step, error) {
	if err := e.deps.observe(ctx, s); err != nil {
		return nil, err
	}
	if err := e.deps.open(ctx, s); err != nil {
		return nil, err
	}
	terms, err := json.Marshal(s.object.Spec.Approvals)
	if err != nil {
		return nil, fmt.Errorf("encode spec.approvals: %w", err)
	}
	of := subject{from, to, s.fleet.Digest, string(terms)}
	if s.now.judged != nil && s.now.judged.of == of {
		return s.now.judged.steps, nil
	}
	all := step{Step: review.Step{Commit: to}, from: from}
	if all.Needed, err = e.needs(ctx, s, from, to); err != nil {
		return nil, err
	}
	steps := []step{all}
	if len(all.Needed) > 0 {
		if steps, err = e.steps(ctx, s, all); err != nil {
			return nil, err
		}
	}
	s.now.judged = &judged{of, steps}
	return steps, nil
}

// steps divides a step into those of the branch.
func (e enforcer) steps(ctx context.Context, s *state, all step) ([]step, error) {
	line, err := s.repository.Line(ctx, all.from, git.Commit{Hash: all.Commit})
	if err != nil || len(line) == 0 || len(line) > mostSteps {
		return []step{all}, err
	}
	at, err := e.forge.of(ctx, s.object)
	if err != nil {
		return nil, err
	}
	walk := walker{e.examiner, at, append([]string{all.from}, line...)}
	var out []step
	for i := len(line); i > 0; {
		one, begun, err := walk.before(ctx, s, i)
		if err != nil {
			return nil, err
		}
		if one.Needed = all.Needed; begun > 0 || i < len(line) {
			if one.Needed, err = e.needs(ctx, s, one.from, one.Commit); err != nil {
				return nil, err
			}
		}
		out, i = append(out, one), begun
	}
	slices.Reverse(out)
	return out, nil
}

// needs returns the approvals that the change from one commit to another needs.
func (e enforcer) needs(ctx context.Context, s *state, from, to string) ([]gitopsv1alpha1.NeededApproval, error) {
	b := &base{commit: git.Commit{Hash: from}}
	at, before, err := b.made.once(ctx, s, b.commit)
	if err != nil {
		return nil, err
	}
	after, err := e.filesOf(ctx, s, to)
	if err != nil {
		return nil, err
	}
	var c comparison.Comparison
	err = e.compute(ctx, func(ctx context.Context) error {
		c, err = at.With(ctx, rehearsal.Revision{Name: git.Commit{Hash: to}.Revision().String(), Files: after})
		return err
	})
	if err != nil {
		return nil, err
	}
	needed, err := b.needed(ctx, s, change{before, after, c})
	if len(needed) > review.MostNeeded {
		return nil, fmt.Errorf("it needs more than %d approvals", review.MostNeeded)
	}
	return needed, err
}

func (x examiner) filesOf(ctx context.Context, s *state, commit string) (artifact.Files, error) {
	ctx, cancel := context.WithTimeout(ctx, x.each)
	defer cancel()
	return s.repository.Files(ctx, git.Commit{Hash: commit})
}

// walker goes back along the commits that a branch had one after the other.
type walker struct {
	examiner
	forge Forge
	line  []string
}

// before returns the step that led to a commit of the line, and where on the line it begun: by the merge of a pull request, if the commit
// holds what merging its head into an earlier commit makes, and else from the commit before.
func (w walker) before(ctx context.Context, s *state, i int) (step, int, error) {
	pushed := step{Step: review.Step{Commit: w.line[i]}, from: w.line[i-1]}
	pull, found, err := w.mergedAs(ctx, s, w.line[i])
	if err != nil || !found {
		return pushed, i - 1, err
	}
	holds, err := w.filesOf(ctx, s, w.line[i])
	if err != nil {
		return pushed, 0, err
	}
	head, err := s.repository.Resolve(ctx, git.Ref{Name: pull.Ref})
	if errors.Is(err, git.ErrRefNotFound) || err == nil && head.Hash != pull.Head {
		return pushed, i - 1, nil
	}
	if err != nil {
		return pushed, 0, err
	}
	for from := i - 1; from >= 0; from-- { // a rebase brings several commits
		is, err := w.merges(ctx, s, w.line[from], head, holds)
		if err != nil {
			return pushed, 0, err
		}
		if is {
			merged := step{Step: review.Step{Commit: w.line[i], PullRequest: pull.Number}, from: w.line[from], pull: pull}
			return merged, from, nil
		}
		if other, is, err := w.mergedAs(ctx, s, w.line[from]); err != nil || is && other.Number != pull.Number {
			return pushed, i - 1, err
		}
	}
	return pushed, i - 1, nil
}

// mergedAs returns the pull request into one of the branches by whose merge there is a commit.
func (w walker) mergedAs(ctx context.Context, s *state, commit string) (forge.PullRequest, bool, error) {
	for _, branch := range s.branches {
		pull, found, err := w.forge.Merged(ctx, commit, branch)
		if err != nil {
			return pull, false, classify(fmt.Errorf("ask by which pull request there is commit %s: %w", commit, err), s.interval())
		}
		if found {
			return pull, true, nil
		}
	}
	return forge.PullRequest{}, false, nil
}

// merges reports whether a merge of a head into a commit holds these files.
func (w walker) merges(ctx context.Context, s *state, onto string, head git.Commit, holds artifact.Files) (bool, error) {
	ours, err := w.filesOf(ctx, s, onto)
	if err != nil {
		return false, err
	}
	files, err := mergedFiles(ctx, s.repository, git.Commit{Hash: onto}, ours, head)
	var conflict *merge.ConflictError
	if errors.As(err, &conflict) || errors.Is(err, git.ErrNoMergeBase) {
		return false, nil
	}
	return err == nil && len(changed(files, holds)) == 0, err
}

// overtaken reports whether the source has another commit by now, which Kustomizations wait for.
func overtaken(ctx context.Context, hub client.Reader, s *state) bool {
	if !s.object.Spec.Enforce {
		return false
	}
	now := &sourcev1.GitRepository{}
	return hub.Get(ctx, client.ObjectKeyFromObject(s.source), now) == nil && revisionOf(now) != revisionOf(s.source)
}
