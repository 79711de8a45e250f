package review

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/clock"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/policies/review"
	"github.com/flotilla-io/flotilla/sources/forge"
)

// Bounds on what people can have done by comments.
const (
	// mostAge is how old a command may be: nobody waits for the answer to an older one.
	mostAge = time.Hour
	// mostCommands is how many are carried out in an hour, for all pull requests of a repository; others wait.
	mostCommands = 60
	// mostSaid is how many comments by people who may not write are asked about in a pass: each costs a request.
	mostSaid = 20
)

// talk is what was heard and said of the pull requests of a repository.
type talk struct {
	heard map[int64]heard
	// at are the times of the commands of the last hour, the oldest first.
	at []time.Time
}

// heard is what was so when comments were last read.
type heard struct {
	updated string
	// again says that they were read twice since: what is said in the same second leaves that time as it is.
	again bool
}

// question is a command that is to be answered.
type question struct {
	pull    forge.PullRequest
	entry   *gitopsv1alpha1.ReviewedPullRequest
	comment int64
	command review.Command
}

// listener carries out commands in comments of people who may write to the repository.
type listener struct{ clock clock.PassiveClock }

// listen reads comments where something has happened. Each command is carried out once: the status has the last one's number.
func (l listener) listen(ctx context.Context, s *state) (loop.Next, error) {
	if len(s.object.Spec.Commands) == 0 {
		return loop.Next{}, nil
	}
	hour := l.clock.Now().Add(-mostAge)
	s.now.talk.at = slices.DeleteFunc(s.now.talk.at, func(at time.Time) bool { return !at.After(hour) })
	for i, p := range s.pulls {
		last, known := s.now.talk.heard[p.Number]
		if same := known && last.updated == p.Updated; same && last.again || s.faults.limited() || ctx.Err() != nil {
			continue
		}
		if whole, err := l.hear(ctx, s, p, &s.object.Status.PullRequests[i]); err != nil {
			s.faults.add(classify(fmt.Errorf("comments of pull request %d: %w", p.Number, err), s.interval()))
		} else if whole {
			s.now.talk.heard[p.Number] = heard{updated: p.Updated, again: known && last.updated == p.Updated}
		}
	}
	return loop.Next{}, nil
}

// hear reads the comments of one pull request. It reports whether all of them were done with.
func (l listener) hear(ctx context.Context, s *state, p forge.PullRequest, entry *gitopsv1alpha1.ReviewedPullRequest) (bool, error) {
	said, err := s.forge.Said(ctx, p.Number, l.clock.Now().Add(-mostAge))
	if err != nil {
		return false, err
	}
	asked := 0
	for _, one := range said {
		command, is := review.CommandOf(one.Text)
		if !is || one.ID <= entry.CommandID {
			continue
		}
		if asked++; asked > mostSaid || len(s.now.talk.at) >= mostCommands {
			return false, nil
		}
		by, err := s.forge.SaidByWriter(ctx, one)
		if err != nil {
			return false, err
		}
		if !by {
			entry.CommandID = one.ID
			continue
		}
		s.now.talk.at = append(s.now.talk.at, l.clock.Now())
		if command = command.Among(s.object.Spec.Commands); command.Verb == gitopsv1alpha1.CommandPlan {
			entry.CommandID, entry.Of = one.ID, nil
			continue
		}
		s.questions = append(s.questions, question{p, entry, one.ID, command})
		return false, nil // the next one after this was answered: the number in the status is that of the last one
	}
	return true, nil
}

// answer answers what was asked, but what needs the files of a merge.
func (listener) answer(ctx context.Context, s *state) (loop.Next, error) {
	for _, q := range s.questions {
		if s.faults.limited() {
			break
		}
		if q.command.Verb != gitopsv1alpha1.CommandWhatIf {
			s.reply(ctx, q, q.command.Answer(s.answerTo(q.command)))
		}
	}
	if len(s.questions) > 0 {
		return loop.Next{After: soon}, nil // there may be more of them
	}
	return loop.Next{}, nil
}

// reply writes the comment that answers a question.
func (s *state) reply(ctx context.Context, q question, body string) {
	comment := forge.Comment{
		Commit: q.entry.Head, Key: fmt.Sprintf("%s/command/%d", s.object.UID, q.comment), // an answer that the status does not know of is found again
		Body: body, At: forge.CommentRef{PullRequest: q.entry.Number},
	}
	if _, err := s.forge.Comment(ctx, comment); err != nil {
		s.faults.add(classify(fmt.Errorf("pull request %d: %w", q.entry.Number, err), s.interval()))
		return
	}
	q.entry.CommandID = q.comment
}

// answerTo returns the text of an answer.
func (s *state) answerTo(c review.Command) string {
	if c.Verb != gitopsv1alpha1.CommandExplain {
		return c.Wrong
	}
	e, err := s.fleet.Explain(c.Kind, c.Namespace, c.Name)
	if err != nil {
		return foreign(err)
	}
	return e.Text(explain.TextOptions{})
}
