package poster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/hint"
	"github.com/flotilla-io/flotilla/reconciler/providers"
	"github.com/flotilla-io/flotilla/reconciler/secrets/inherited"
	"github.com/flotilla-io/flotilla/sources/forge"
	"github.com/flotilla-io/flotilla/sources/githubapp"
)

// Connect returns how statuses get to a forge. Errors are forge.ErrProvider.
type Connect func(p forge.Provider, timeout time.Duration) (forge.Poster, error)

func connectForge(out egress.Dialer) Connect {
	tokens := githubapp.NewTokens(clock.RealClock{})
	return func(p forge.Provider, timeout time.Duration) (forge.Poster, error) {
		return forge.New(p, forge.Options{Timeout: timeout, Egress: out, Tokens: tokens})
	}
}

// connections reach the forges of CommitStatuses.
type connections struct {
	hub     client.Reader
	kept    *providers.Connections[sender]
	secrets *inherited.Known
}

// longestTimeout is the most that a Provider may give a post.
const longestTimeout = 5 * time.Minute

func newConnections(hub, live client.Reader, opts Options) *connections {
	connect := func(p forge.Provider, timeout time.Duration) (sender, error) {
		return connectSender(opts.Connect, opts.Egress, p, timeout)
	}
	return &connections{hub: hub, kept: providers.New(live, connect, longestTimeout), secrets: opts.Secrets}
}

// forge returns how to reach the forge of a CommitStatus. An error of class
// loop.ClassStalled is about the Provider.
func (c *connections) forge(ctx context.Context, cs *gitopsv1alpha1.CommitStatus) (_ sender, err error) {
	var provider notificationv1beta3.Provider
	defer func() { err = c.secrets.Clean(&provider, err) }()
	key := client.ObjectKey{Namespace: cs.Namespace, Name: cs.Spec.ProviderRef.Name}
	if err := c.hub.Get(ctx, key, &provider); apierrors.IsNotFound(err) {
		return nil, providers.NotReady(fmt.Errorf("the Provider %s does not exist%s: create it, or correct the Alert", key.Name, propagation.DidYouMean(hint.Name(ctx, c.hub, &notificationv1beta3.ProviderList{}, cs, key))))
	} else if err != nil {
		return nil, fmt.Errorf("read the Provider %s: %w", key.Name, err)
	}
	to, err := c.kept.Of(ctx, client.ObjectKeyFromObject(cs), &provider, cs.Spec.Repository)
	if err != nil {
		return nil, err
	}
	return discreet{to, &provider, c.secrets}, nil
}

// discreet is a sender whose errors have nothing that its Provider got of Secrets.
type discreet struct {
	sender
	provider *notificationv1beta3.Provider
	secrets  *inherited.Known
}

func (d discreet) send(ctx context.Context, cs *gitopsv1alpha1.CommitStatus, what *posting) error {
	return d.secrets.Clean(d.provider, d.sender.send(ctx, cs, what))
}

// classify turns a forge's error into one of the loop's classes.
func classify(err error) error {
	if errors.Is(err, forge.ErrNoPullRequest) {
		return loop.Waiting(gitopsv1alpha1.CommitStatusReasonNoPullRequest, pullRequestPoll, err)
	}
	return providers.Classify(err)
}

// routeOf returns the route of a CommitStatus.
func routeOf(cs *gitopsv1alpha1.CommitStatus) route {
	return route{namespace: cs.Namespace, host: hostOf(cs.Spec.Repository), comments: cs.Spec.Comment != ""}
}

// hostOf returns the forge of an address.
func hostOf(repository string) string {
	u, err := url.Parse(repository)
	if err != nil || u.Host == "" {
		return repository
	}
	return u.Host
}
