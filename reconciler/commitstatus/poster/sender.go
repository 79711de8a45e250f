package poster

import (
	"context"
	"fmt"
	"time"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/comment"
	"github.com/flotilla-io/flotilla/reconciler/providers"
	"github.com/flotilla-io/flotilla/sources/forge"
)

// sender posts to a forge what is to be reported about a commit. A comment records in what where it stands.
type sender interface {
	send(ctx context.Context, cs *gitopsv1alpha1.CommitStatus, what *posting) error
}

// posting is what is to be posted about a commit.
type posting struct {
	gitopsv1alpha1.PostedStatus
	// last says that nothing more is going to be posted about the commit.
	last bool
}

// statusSender posts commit statuses.
type statusSender struct{ to forge.Poster }

func (s statusSender) send(ctx context.Context, cs *gitopsv1alpha1.CommitStatus, what *posting) error {
	return s.to.Post(ctx, forge.Status{
		Commit: what.Commit, State: providers.StateOf(what.State), Context: cs.Spec.Context, TargetURL: cs.Spec.TargetURL, Description: what.Description,
	})
}

// commentSender keeps a comment on each commit.
type commentSender struct{ to forge.Commenter }

func (s commentSender) send(ctx context.Context, cs *gitopsv1alpha1.CommitStatus, what *posting) error {
	c := forge.Comment{Commit: what.Commit, Key: keyOf(cs), Body: cs.Spec.Comment}
	if last := cs.Status.Posted; last != nil && last.Commit == what.Commit && last.Comment != nil {
		c.At = forge.CommentRef{PullRequest: last.Comment.PullRequest, ID: last.Comment.ID}
	}
	if what.last {
		c.Body = comment.Ended(cs.Spec.Context, what.Commit, what.Description)
	}
	at, err := s.to.Comment(ctx, c)
	if err == nil {
		what.Comment = &gitopsv1alpha1.CommentReference{PullRequest: at.PullRequest, ID: at.ID}
	}
	return err
}

// keyOf is the same for a source and a Provider, also after their CommitStatus was made anew: the comment is found
// again by it. Nobody outside the control plane knows the UID of a source.
func keyOf(cs *gitopsv1alpha1.CommitStatus) string {
	unique := cs.UID
	if owner := metav1.GetControllerOf(cs); owner != nil {
		unique = owner.UID
	}
	return string(unique) + "/" + cs.Spec.ProviderRef.Name
}

// connectSender reaches a forge for statuses by connect, and for comments by egress.
func connectSender(connect Connect, out egress.Dialer, p forge.Provider, timeout time.Duration) (sender, error) {
	if forge.Comments(p.Type) {
		to, err := forge.NewCommenter(p, forge.Options{Timeout: timeout, Egress: out})
		return commentSender{to}, err
	}
	to, err := connect(p, timeout)
	return statusSender{to}, err
}

// A forge may come to know that a pull request brought a commit a while after it shows the commit.
const (
	pullRequestPoll = 5 * time.Second
	pullRequestTime = 30 * time.Second
)

// noPullRequest is that there is nothing to comment on, once that has been so for a while; until then, when to
// look again.
func (s *state) noPullRequest(e *loop.Error, now time.Time) (metav1.ConditionStatus, time.Duration) {
	known := apimeta.FindStatusCondition(s.status.Status.Conditions, gitopsv1alpha1.CommitStatusSynced)
	same := known != nil && known.Reason == e.Reason && known.Message == e.Error()
	if same && (known.Status == metav1.ConditionTrue || now.Sub(known.LastTransitionTime.Time) >= pullRequestTime) {
		return metav1.ConditionTrue, 0
	}
	return metav1.ConditionUnknown, pullRequestPoll
}

// elsewhere leaves alone what the comment of a source reports.
func (c *connections) elsewhere(ctx context.Context, s *state) (loop.Next, error) {
	if s.before.Spec.SourceRef != nil {
		return loop.Next{}, nil
	}
	provider := &notificationv1beta3.Provider{}
	err := c.hub.Get(ctx, client.ObjectKey{Namespace: s.key.Namespace, Name: s.before.Spec.ProviderRef.Name}, provider)
	if client.IgnoreNotFound(err) != nil {
		return loop.Next{}, fmt.Errorf("read the Provider %s: %w", s.before.Spec.ProviderRef.Name, err)
	}
	s.elsewhere = err == nil && forge.Comments(provider.Spec.Type)
	s.tried = s.elsewhere
	return loop.Next{Done: s.elsewhere}, nil
}
