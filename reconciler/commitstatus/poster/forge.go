package poster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/hint"
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

// connections keep one Poster per CommitStatus, as long as what it was made
// from stays the same, so that connections are used again.
type connections struct {
	hub, live client.Reader // live reads Secrets without a cache
	connect   Connect
	secrets   *inherited.Known
	egress    egress.Dialer

	mu    sync.Mutex
	byKey map[client.ObjectKey]connection
}

type connection struct {
	madeFrom [sha256.Size]byte
	sender   sender
}

func (c *connections) of(key client.ObjectKey, p forge.Provider, timeout time.Duration) (sender, error) {
	madeFrom := fingerprint(p, timeout)
	c.mu.Lock()
	defer c.mu.Unlock()
	if have, ok := c.byKey[key]; ok && have.madeFrom == madeFrom {
		return have.sender, nil
	}
	to, err := connectSender(c.connect, c.egress, p, timeout)
	if err != nil {
		return nil, err
	}
	c.byKey[key] = connection{madeFrom: madeFrom, sender: to}
	return to, nil
}

func (c *connections) forget(key client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byKey, key)
}

func fingerprint(p forge.Provider, timeout time.Duration) [sha256.Size]byte {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %q %d", p.Type, p.Address, timeout)
	for _, data := range []map[string][]byte{p.Secret, p.Certificates} {
		for _, key := range slices.Sorted(maps.Keys(data)) {
			fmt.Fprintf(hash, " %q %q", key, data[key])
		}
		fmt.Fprint(hash, ";")
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// forge returns how to reach the forge of a CommitStatus. An error of class
// loop.ClassStalled is about the Provider.
func (c *connections) forge(ctx context.Context, cs *gitopsv1alpha1.CommitStatus) (_ sender, err error) {
	var provider notificationv1beta3.Provider
	defer func() { err = c.secrets.Clean(&provider, err) }()
	key := client.ObjectKey{Namespace: cs.Namespace, Name: cs.Spec.ProviderRef.Name}
	if err := c.hub.Get(ctx, key, &provider); apierrors.IsNotFound(err) {
		return nil, notReady(fmt.Errorf("the Provider %s does not exist%s: create it, or correct the Alert", key.Name, propagation.DidYouMean(hint.Name(ctx, c.hub, &notificationv1beta3.ProviderList{}, cs, key))))
	} else if err != nil {
		return nil, fmt.Errorf("read the Provider %s: %w", key.Name, err)
	}
	if provider.Spec.ProxySecretRef != nil || provider.Spec.Proxy != "" {
		return nil, notReady(fmt.Errorf("the Provider %s asks for a proxy, which is not supported yet: remove spec.proxySecretRef and spec.proxy", key.Name))
	}
	secret, err := c.secret(ctx, cs.Namespace, provider.Spec.SecretRef)
	if err != nil {
		return nil, err
	}
	certificates, err := c.secret(ctx, cs.Namespace, provider.Spec.CertSecretRef)
	if err != nil {
		return nil, err
	}
	to, err := c.of(client.ObjectKeyFromObject(cs), forge.Provider{
		Type: provider.Spec.Type, Address: cs.Spec.Repository, Secret: secret, Certificates: certificates,
	}, min(max(provider.GetTimeout(), leastTimeout), mostTimeout))
	if err != nil {
		return nil, notReady(err)
	}
	return discreet{to, &provider, c.secrets}, nil
}

// What a Provider may give a post: less is a fault each time, more keeps a worker.
const (
	leastTimeout = time.Second
	mostTimeout  = 5 * time.Minute
)

func (c *connections) secret(ctx context.Context, namespace string, ref *meta.LocalObjectReference) (map[string][]byte, error) {
	if ref == nil {
		return nil, nil
	}
	if faults := path.IsValidPathSegmentName(ref.Name); len(faults) > 0 {
		return nil, notReady(fmt.Errorf("%q is no name of a Secret: it %s: correct the Provider", ref.Name, faults[0]))
	}
	var secret corev1.Secret
	err := c.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, &secret)
	if apierrors.IsNotFound(err) {
		return nil, notReady(fmt.Errorf("the Secret %s does not exist: create it, or correct the Provider", ref.Name))
	}
	if err != nil {
		return nil, fmt.Errorf("read the Secret %s: %w", ref.Name, err)
	}
	return secret.Data, nil
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

func notReady(err error) error {
	return loop.Stalled(gitopsv1alpha1.CommitStatusReasonProviderNotReady, err)
}

// classify turns a forge's error into one of the loop's classes.
func classify(err error) error {
	var limited *forge.RateLimitError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, forge.ErrNoPullRequest):
		return loop.Waiting(gitopsv1alpha1.CommitStatusReasonNoPullRequest, pullRequestPoll, err)
	case errors.Is(err, egress.ErrNotAllowed):
		return loop.Stalled(gitopsv1alpha1.CommitStatusReasonAddressNotAllowed, err)
	case errors.As(err, &limited):
		return loop.Waiting(gitopsv1alpha1.CommitStatusReasonUnreachable, limited.After, err)
	case errors.Is(err, forge.ErrProvider):
		return notReady(err)
	case errors.Is(err, forge.ErrUnauthorized), errors.Is(err, forge.ErrNotFound), errors.Is(err, forge.ErrStatus):
		return loop.Stalled(gitopsv1alpha1.CommitStatusReasonRefused, err)
	default:
		return loop.Retry(gitopsv1alpha1.CommitStatusReasonUnreachable, err)
	}
}

// states are the forges' words for the states. A commit that could not be tried is a
// failure to them.
var states = map[gitopsv1alpha1.CommitState]forge.State{
	gitopsv1alpha1.CommitPending: forge.Pending,
	gitopsv1alpha1.CommitSuccess: forge.Success,
	gitopsv1alpha1.CommitFailure: forge.Failure,
	gitopsv1alpha1.CommitError:   forge.Failure,
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
