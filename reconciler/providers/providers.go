package providers

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/sources/forge"
)

// leastTimeout is the least that a Provider may give a request: less is a fault each time.
const leastTimeout = time.Second

// Connect makes what speaks with a forge, with a time for each request.
type Connect[T any] func(p forge.Provider, timeout time.Duration) (T, error)

// Connections keep what speaks with forges. Use New. They are safe for use by several goroutines.
type Connections[T any] struct {
	live    client.Reader
	connect Connect[T]
	longest time.Duration

	mu    sync.Mutex
	byKey map[client.ObjectKey]connection[T]
}

type connection[T any] struct {
	madeFrom [sha256.Size]byte
	to       T
}

// New returns Connections of which none is made yet; live reads without a cache, and longest is the most that a Provider may
// give a request: more keeps a worker.
func New[T any](live client.Reader, connect Connect[T], longest time.Duration) *Connections[T] {
	return &Connections[T]{live: live, connect: connect, longest: longest, byKey: map[client.ObjectKey]connection[T]{}}
}

// Of returns what speaks with the forge of a Provider about the repository at an address, for the named object.
func (c *Connections[T]) Of(ctx context.Context, owner client.ObjectKey, provider *notificationv1beta3.Provider, address string) (T, error) {
	var none T
	if provider.Spec.ProxySecretRef != nil || provider.Spec.Proxy != "" {
		return none, NotReady(fmt.Errorf("the Provider %s asks for a proxy, which is not supported yet: remove spec.proxySecretRef and spec.proxy", provider.Name))
	}
	secret, err := c.secret(ctx, provider.Namespace, provider.Spec.SecretRef)
	if err != nil {
		return none, err
	}
	certificates, err := c.secret(ctx, provider.Namespace, provider.Spec.CertSecretRef)
	if err != nil {
		return none, err
	}
	p := forge.Provider{Type: provider.Spec.Type, Address: address, Secret: secret, Certificates: certificates}
	to, err := c.kept(owner, p, min(max(provider.GetTimeout(), leastTimeout), c.longest))
	if err != nil {
		return none, NotReady(err)
	}
	return to, nil
}

// Forget drops what is kept for an object that is gone.
func (c *Connections[T]) Forget(owner client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byKey, owner)
}

// NotReady makes an error one about a Provider that a person has to mend.
func NotReady(err error) error {
	return loop.Stalled(gitopsv1alpha1.CommitStatusReasonProviderNotReady, err)
}

func (c *Connections[T]) kept(owner client.ObjectKey, p forge.Provider, timeout time.Duration) (T, error) {
	madeFrom := fingerprint(p, timeout)
	c.mu.Lock()
	defer c.mu.Unlock()
	if have, is := c.byKey[owner]; is && have.madeFrom == madeFrom {
		return have.to, nil
	}
	to, err := c.connect(p, timeout)
	if err == nil {
		c.byKey[owner] = connection[T]{madeFrom: madeFrom, to: to}
	}
	return to, err
}

func fingerprint(p forge.Provider, timeout time.Duration) [sha256.Size]byte {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %q %d", p.Type, p.Address, timeout)
	for _, data := range []map[string][]byte{p.Secret, p.Certificates} {
		for _, name := range slices.Sorted(maps.Keys(data)) {
			fmt.Fprintf(hash, " %q %q", name, data[name])
		}
		fmt.Fprint(hash, ";")
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

func (c *Connections[T]) secret(ctx context.Context, namespace string, ref *meta.LocalObjectReference) (map[string][]byte, error) {
	if ref == nil {
		return nil, nil
	}
	if faults := path.IsValidPathSegmentName(ref.Name); len(faults) > 0 {
		return nil, NotReady(fmt.Errorf("%q is no name of a Secret: it %s: correct the Provider", ref.Name, faults[0]))
	}
	var secret corev1.Secret
	err := c.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, &secret)
	if apierrors.IsNotFound(err) {
		return nil, NotReady(fmt.Errorf("the Secret %s does not exist: create it, or correct the Provider", ref.Name))
	}
	if err != nil {
		return nil, fmt.Errorf("read the Secret %s: %w", ref.Name, err)
	}
	return secret.Data, nil
}
