package review

import (
	"context"
	"fmt"
	"time"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/codeowners"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/hint"
	"github.com/flotilla-io/flotilla/reconciler/providers"
	"github.com/flotilla-io/flotilla/reconciler/secrets/inherited"
	"github.com/flotilla-io/flotilla/sources/forge"
)

// connections reach the forges of PullRequestReviews.
type connections struct {
	hub     client.Reader
	kept    *providers.Connections[Forge]
	secrets *inherited.Known
}

// longestTimeout is the most that a Provider may give a request.
const longestTimeout = time.Minute

// of returns the forge that a PullRequestReview names. What only a person can mend is of class loop.ClassStalled.
func (c connections) of(ctx context.Context, object *gitopsv1alpha1.PullRequestReview) (_ Forge, err error) {
	var provider notificationv1beta3.Provider
	defer func() { err = c.secrets.Clean(&provider, err) }()
	key := client.ObjectKey{Namespace: object.Namespace, Name: object.Spec.ProviderRef.Name}
	if err := c.hub.Get(ctx, key, &provider); apierrors.IsNotFound(err) {
		return nil, providers.NotReady(fmt.Errorf("the Provider %s does not exist%s: create it, or correct spec.providerRef", key.Name, propagation.DidYouMean(hint.Name(ctx, c.hub, &notificationv1beta3.ProviderList{}, object, key))))
	} else if err != nil {
		return nil, fmt.Errorf("read the Provider %s: %w", key.Name, err)
	}
	if provider.Spec.Suspend {
		return nil, providers.NotReady(fmt.Errorf("the Provider %s is suspended", key.Name))
	}
	to, err := c.kept.Of(ctx, client.ObjectKeyFromObject(object), &provider, provider.Spec.Address)
	if err != nil {
		return nil, err
	}
	return discreet{to, &provider, c.secrets}, nil
}

// discreet is a Forge whose errors have nothing that its Provider got of Secrets.
type discreet struct {
	Forge
	provider *notificationv1beta3.Provider
	secrets  *inherited.Known
}

func (d discreet) PullRequests(ctx context.Context) ([]forge.PullRequest, bool, error) {
	open, all, err := d.Forge.PullRequests(ctx)
	return open, all, d.secrets.Clean(d.provider, err)
}

func (d discreet) Post(ctx context.Context, status forge.Status) error {
	return d.secrets.Clean(d.provider, d.Forge.Post(ctx, status))
}

func (d discreet) Comment(ctx context.Context, c forge.Comment) (forge.CommentRef, error) {
	at, err := d.Forge.Comment(ctx, c)
	return at, d.secrets.Clean(d.provider, err)
}

func (d discreet) LabelledByWriter(ctx context.Context, number int64, label string) (bool, error) {
	by, err := d.Forge.LabelledByWriter(ctx, number, label)
	return by, d.secrets.Clean(d.provider, err)
}

func (d discreet) Unlabel(ctx context.Context, number int64, label string) error {
	return d.secrets.Clean(d.provider, d.Forge.Unlabel(ctx, number, label))
}

func (d discreet) Said(ctx context.Context, number int64, since time.Time) ([]forge.Said, error) {
	said, err := d.Forge.Said(ctx, number, since)
	return said, d.secrets.Clean(d.provider, err)
}

func (d discreet) SaidByWriter(ctx context.Context, what forge.Said) (bool, error) {
	by, err := d.Forge.SaidByWriter(ctx, what)
	return by, d.secrets.Clean(d.provider, err)
}

func (d discreet) Approvers(ctx context.Context, number int64, head string) ([]forge.Approver, error) {
	by, err := d.Forge.Approvers(ctx, number, head)
	return by, d.secrets.Clean(d.provider, err)
}

func (d discreet) Merged(ctx context.Context, commit, branch string) (forge.PullRequest, bool, error) {
	pull, found, err := d.Forge.Merged(ctx, commit, branch)
	return pull, found, d.secrets.Clean(d.provider, err)
}

func (d discreet) CodeOwners(ctx context.Context, commit string) (codeowners.Kind, string, error) {
	kind, text, err := d.Forge.CodeOwners(ctx, commit)
	return kind, text, d.secrets.Clean(d.provider, err)
}

func (d discreet) InTeam(ctx context.Context, team string, who forge.Approver) (bool, error) {
	is, err := d.Forge.InTeam(ctx, team, who)
	return is, d.secrets.Clean(d.provider, err)
}

// classify turns a forge's error into one of the loop's classes. What it refuses is tried again, as nothing on the hub may show
// that it was mended.
func classify(err error, interval time.Duration) error {
	outcome := loop.As(providers.Classify(err), "")
	if outcome == nil || outcome.Class == loop.ClassWaiting {
		return providers.Classify(err)
	}
	return loop.Waiting(outcome.Reason, interval, err)
}
