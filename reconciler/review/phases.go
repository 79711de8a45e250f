package review

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/runs"
	"github.com/flotilla-io/flotilla/policies/review"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/forge"
	"github.com/flotilla-io/flotilla/sources/git"
)

// read reads the PullRequestReview.
func (r *Reconciler) read(key client.ObjectKey, run *runs.Run) loop.Phase[state] {
	return func(ctx context.Context, s *state) (loop.Next, error) {
		cached := &gitopsv1alpha1.PullRequestReview{}
		err := r.deps.Hub.Get(ctx, key, cached)
		if client.IgnoreNotFound(err) != nil {
			return loop.Next{}, fmt.Errorf("read the PullRequestReview: %w", err)
		}
		object, found := r.statuses.written.Latest(key, cached, err == nil)
		if !found || object.DeletionTimestamp != nil {
			r.forge.kept.Forget(key)
			r.memory.drop(key)
			return loop.Next{Done: true}, nil
		}
		run.WorksOn(object)
		s.before, s.object = object, object.DeepCopy()
		s.last = r.memory.of(key)
		if s.now.approvals = s.last.approvals; s.now.approvals == nil {
			s.now.approvals = map[int64]askedApproval{}
		}
		if s.now.talk = s.last.talk; s.now.talk == nil {
			s.now.talk = &talk{heard: map[int64]heard{}}
		}
		s.now.judged = s.last.judged
		return loop.Next{}, nil
	}
}

// suspend leaves alone what is suspended.
func (r *Reconciler) suspend(_ context.Context, s *state) (loop.Next, error) {
	if s.object.Spec.Suspend {
		return loop.Next{}, loop.Stalled(gitopsv1alpha1.ReviewReasonSuspended, errors.New("suspended: pull requests stay as they are"))
	}
	return loop.Next{}, nil
}

// prepare reads the rules, and the source with its branches.
func (r *Reconciler) prepare(ctx context.Context, s *state) (_ loop.Next, err error) {
	if s.terms.rules, err = review.Rules(ctx, r.rules, s.object.Spec.Rules); err != nil {
		return loop.Next{}, loop.Stalled(gitopsv1alpha1.ReviewReasonInvalidRule, err)
	}
	if s.terms.approvals, err = review.Approvals(s.object.Spec.Approvals); err != nil {
		return loop.Next{}, loop.Stalled(gitopsv1alpha1.ReviewReasonInvalidApproval, err)
	}
	s.source = &sourcev1.GitRepository{}
	key := client.ObjectKey{Namespace: s.object.Namespace, Name: s.object.Spec.SourceRef.Name}
	err = r.deps.Hub.Get(ctx, key, s.source)
	if apierrors.IsNotFound(err) {
		return loop.Next{}, loop.Waiting(gitopsv1alpha1.ReviewReasonSourceNotReady, s.interval(), fmt.Errorf("the GitRepository %s does not exist: create it, or correct spec.sourceRef", key.Name))
	}
	if err != nil {
		return loop.Next{}, fmt.Errorf("read the GitRepository %s: %w", key.Name, err)
	}
	s.now.asked = s.object.Annotations[meta.ReconcileRequestAnnotation] + " " + s.source.Annotations[meta.ReconcileRequestAnnotation]
	if s.branches = s.object.Spec.Branches; len(s.branches) > 0 {
		return loop.Next{}, nil
	}
	ref := s.source.Spec.Reference
	if ref != nil && (ref.Tag != "" || ref.SemVer != "" || ref.Name != "" || ref.Commit != "") {
		return loop.Next{}, loop.Stalled(gitopsv1alpha1.ReviewReasonSourceNotReady, fmt.Errorf("the GitRepository %s follows no branch: name those whose pull requests are reviewed in spec.branches", key.Name))
	}
	s.branches = []string{git.DefaultBranch}
	if ref != nil && ref.Branch != "" {
		s.branches = []string{ref.Branch}
	}
	return loop.Next{}, nil
}

// find opens the forge.
func (r *Reconciler) find(ctx context.Context, s *state) (_ loop.Next, err error) {
	s.forge, err = r.forge.of(ctx, s.object)
	if e := loop.As(err, ""); e != nil && e.Class == loop.ClassStalled {
		err = loop.Waiting(e.Reason, s.interval(), err) // a Provider or Secret that is mended wakes nobody
	}
	return loop.Next{}, err
}

// list asks the forge for open pull requests, and lets go of those that are not open any more.
func (r *Reconciler) list(ctx context.Context, s *state) (loop.Next, error) {
	open, all, err := s.forge.PullRequests(ctx)
	if err != nil {
		return loop.Next{}, classify(err, s.interval())
	}
	open = slices.DeleteFunc(open, func(p forge.PullRequest) bool { return !slices.Contains(s.branches, p.Base) })
	s.object.Status.Open = int32(len(open)) //nolint:gosec // the forge's list is bounded
	if len(open) > r.opts.Limits.Open || !all {
		s.faults.add(fmt.Errorf("more than %d pull requests are open: those that were opened last are not reviewed", min(len(open), r.opts.Limits.Open)))
		open = open[:min(len(open), r.opts.Limits.Open)]
	}
	slices.SortFunc(open, func(a, b forge.PullRequest) int { return int(a.Number - b.Number) })
	known := map[int64]gitopsv1alpha1.ReviewedPullRequest{}
	for _, p := range s.object.Status.PullRequests {
		known[p.Number] = p
	}
	s.pulls, s.object.Status.PullRequests = open, nil
	for _, p := range open {
		entry := known[p.Number]
		if entry.Number, entry.Base = p.Number, p.Base; entry.Head != p.Head {
			entry.Head, entry.Phase, entry.Message, entry.Approvals = p.Head, gitopsv1alpha1.ReviewPending, "not looked at yet", nil
		}
		s.object.Status.PullRequests = append(s.object.Status.PullRequests, entry)
	}
	maps.DeleteFunc(s.now.approvals, func(number int64, _ askedApproval) bool {
		return !slices.ContainsFunc(open, func(p forge.PullRequest) bool { return p.Number == number })
	})
	maps.DeleteFunc(s.now.talk.heard, func(number int64, _ heard) bool {
		return !slices.ContainsFunc(open, func(p forge.PullRequest) bool { return p.Number == number })
	})
	if s.last.asked != "" && s.last.asked != s.now.asked {
		return loop.Next{After: echo}, nil
	}
	return loop.Next{}, nil
}

// look reads the fleet, if there is anything to review.
func (r *Reconciler) look(ctx context.Context, s *state) (loop.Next, error) {
	if len(s.questions) == 0 && !slices.ContainsFunc(s.pulls, s.reviewable) {
		s.fleet, s.now.fleet = nil, ""
		return loop.Next{}, nil
	}
	return loop.Next{}, r.deps.observe(ctx, s)
}

// observe reads the fleet, once in a pass.
func (d Deps) observe(ctx context.Context, s *state) error {
	if s.fleet != nil {
		return nil
	}
	fleet, err := d.Fleet(ctx)
	if err != nil {
		return loop.Waiting(gitopsv1alpha1.ReviewReasonFleet, s.interval(), fmt.Errorf("read the fleet: %w", err))
	}
	if of := s.sourceOf(); !fleet.Follows(of) {
		return loop.Waiting(gitopsv1alpha1.ReviewReasonSourceNotReady, s.interval(), fmt.Errorf("no Kustomization has the source %s, so that a merge does nothing", of))
	}
	s.fleet, s.now.fleet = fleet, fleet.Digest
	return nil
}

func (s *state) sourceOf() inventory.Source {
	return inventory.Source{Kind: sourcev1.GitRepositoryKind, ObjectKey: client.ObjectKeyFromObject(s.source)}
}

// base is a branch that pull requests are to be merged into.
type base struct {
	commit git.Commit
	err    error
	made   made
	owners owners
}

// open opens the repository, once in a pass.
func (d Deps) open(ctx context.Context, s *state) (err error) {
	if s.repository != nil {
		return nil
	}
	if s.repository, err = d.Open(ctx, s.source); err != nil {
		s.repository = nil // an interface that is not nil may hold a nil
		e := loop.As(err, gitopsv1alpha1.ReviewReasonSourceNotReady)
		return loop.Waiting(e.Reason, s.interval(), fmt.Errorf("the GitRepository %s: %w", s.source.Name, err))
	}
	return nil
}

// resolve asks the repository for the branches.
func (r *Reconciler) resolve(ctx context.Context, s *state) (loop.Next, error) {
	if s.fleet == nil {
		return loop.Next{}, nil
	}
	if err := r.deps.open(ctx, s); err != nil {
		return loop.Next{}, err
	}
	s.bases = map[string]*base{}
	for _, p := range s.pulls {
		if s.bases[p.Base] != nil || !s.reviewable(p) {
			continue
		}
		b := &base{}
		if b.commit, b.err = s.repository.Resolve(ctx, git.Ref{Branch: p.Base}); b.err != nil && ctx.Err() == nil {
			s.faults.add(b.err)
		}
		s.bases[p.Base] = b
	}
	return loop.Next{}, nil
}

// subject returns what a review of a pull request is about now.
func (s *state) subject(p forge.PullRequest) gitopsv1alpha1.ReviewSubject {
	spec := s.object.Spec
	terms := []any{spec.Rules, spec.Context, spec.ProviderRef}
	if len(spec.Approvals) > 0 { // reviews that there were before there were approvals stay as they are
		terms = append(terms, spec.Approvals)
	}
	text, err := json.Marshal(terms)
	if err != nil {
		text = fmt.Append(nil, s.object.Generation) // rules are texts, which can be encoded
	}
	rules := sha256.Sum256(text)
	return gitopsv1alpha1.ReviewSubject{Head: p.Head, Base: s.bases[p.Base].commit.Hash, Fleet: s.fleet.Digest, Rules: hex.EncodeToString(rules[:6])}
}

// decide finds out which reviews are outdated, and has their statuses pending: a review of something else is never green.
func (r *Reconciler) decide(ctx context.Context, s *state) (loop.Next, error) {
	r.memory.keep(client.ObjectKeyFromObject(s.object), s.now)
	var next loop.Next
	var later []int
	for i, p := range s.pulls {
		entry := &s.object.Status.PullRequests[i]
		if why := s.refused[p.Number]; why != "" {
			entry.Phase, entry.Message, entry.Of, entry.Summary, entry.BrokenRules, entry.Approvals = gitopsv1alpha1.ReviewNot, why, nil, nil, nil, nil
			s.tell(ctx, entry, gitopsv1alpha1.CommitPending, why)
			continue
		}
		if b := s.bases[p.Base]; b.err != nil {
			s.outdate(ctx, entry, "the branch "+p.Base+" cannot be read")
			continue
		}
		now := s.subject(p)
		if entry.Of != nil && *entry.Of == now && entry.Phase != gitopsv1alpha1.ReviewPending {
			continue
		}
		s.outdate(ctx, entry, review.Outdated(entry.Base, entry.Of, now))
		switch {
		case review.OfAnotherFleet(entry.Of, now) && s.last.fleet != "" && s.last.fleet != now.Fleet: // after a restart nothing is known
			next.After = min(settling, s.interval())
		case entry.Of == nil || entry.Of.Head != p.Head:
			s.due = append(s.due, i)
		default:
			later = append(later, i)
		}
	}
	s.due = append(s.due, later...) // what nobody has a review of goes first
	return next, nil
}

// outdate has a review pending. The forge is told where it knows another state of the commit.
func (s *state) outdate(ctx context.Context, entry *gitopsv1alpha1.ReviewedPullRequest, why string) {
	entry.Phase, entry.Message = gitopsv1alpha1.ReviewPending, why
	if posted := entry.Posted; posted != nil && posted.Commit == entry.Head && posted.State != gitopsv1alpha1.CommitPending {
		s.post(ctx, entry, gitopsv1alpha1.CommitPending, why)
	}
}

// handled is the annotation by which a look is asked for.
func handled(object *gitopsv1alpha1.PullRequestReview) string {
	return object.Annotations[meta.ReconcileRequestAnnotation]
}
