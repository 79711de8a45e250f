package credentials

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-io/flotilla/internal/registration"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// Store keeps the kubeconfig that leads to the hub.
type Store interface {
	// Load returns it.
	Load(ctx context.Context) ([]byte, error)
	// Save replaces it.
	Save(ctx context.Context, kubeconfig []byte) error
}

// Options name the agent and its Store. Cluster and Store are required.
type Options struct {
	// Cluster is the name of the agent's cluster.
	Cluster string
	// Context of the kubeconfig that is used; empty is its current one.
	Context string
	// Store keeps the kubeconfig.
	Store Store
	// Threshold is the fraction of a certificate's lifetime that is left when the next one is
	// requested; zero means a third.
	Threshold float64
	// Interval is how often the certificate is checked; zero means 5 min.
	Interval time.Duration
	// Skew is how far the hub's clock is ahead of this one; nil means not at all.
	Skew func() time.Duration
	// Renewed is called when a new certificate is in use; nil is not called.
	Renewed func()
	// Request asks for a certificate; nil means registration.Request.
	Request func(context.Context, *rest.Config, registration.Options) (registration.Credentials, error)
	// Clock is the time; nil means the machine's.
	Clock clock.WithTicker
}

const (
	defaultThreshold = 1.0 / 3
	defaultInterval  = 5 * time.Minute
	// firstRetry is the first pause after a request that failed; it doubles
	// up to the interval.
	firstRetry = 10 * time.Second
	// distrust is how long a certificate is kept that was due for renewal when it had just been
	// issued: a clock is wrong then, and more requests do not help.
	distrust = time.Hour
)

// Keeper keeps one certificate. Use New.
type Keeper struct {
	options Options
	plain   *rest.Config // not an agent's certificate: used as it is
	way     *connection  // nil for plain
	wake    chan struct{}

	given    time.Time // when a certificate was issued that was due at once; only Run uses it
	reported string    // what was reported last; only Run uses it
}

// New returns a Keeper of the credentials in cfg. It returns an error if they cannot be read,
// or are those of another cluster's agent.
func New(cfg *rest.Config, o Options) (*Keeper, error) {
	if o.Threshold == 0 {
		o.Threshold = defaultThreshold
	}
	if o.Interval == 0 {
		o.Interval = defaultInterval
	}
	if o.Skew == nil {
		o.Skew = func() time.Duration { return 0 }
	}
	if o.Renewed == nil {
		o.Renewed = func() {}
	}
	if o.Request == nil {
		o.Request = registration.Request
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	k := &Keeper{options: o, wake: make(chan struct{}, 1)}
	current, found, err := credentialsOf(cfg)
	if err != nil {
		return nil, err
	}
	if !found {
		k.plain = cfg
		return k, nil
	}
	certificate, err := leaf(current)
	if err != nil {
		return nil, fmt.Errorf("the certificate and the key of the agent cannot be used: %w", err)
	}
	switch cluster, is := identity.ClusterOfAgent(certificate.Subject.CommonName); {
	case !is:
		k.plain = cfg
		return k, nil
	case cluster != o.Cluster:
		return nil, fmt.Errorf("the kubeconfig is that of the agent of %s, and this is to be the one of %s: use the kubeconfig of this cluster, or the other --cluster-name", cluster, o.Cluster)
	}
	k.way, err = connect(cfg, current)
	return k, err
}

// Config returns the connection to the hub with the present certificate.
func (k *Keeper) Config() *rest.Config {
	if k.plain != nil {
		return rest.CopyConfig(k.plain)
	}
	return rest.CopyConfig(k.way.config)
}

// Check makes Run check the certificate now: the hub does not accept it.
func (k *Keeper) Check() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Run keeps the certificate valid until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	if k.plain != nil {
		return
	}
	retry := firstRetry
	for {
		next, err := k.refresh(ctx)
		if ctx.Err() != nil {
			return
		}
		k.report(ctx, err)
		if err == nil {
			retry = firstRetry
			k.sleep(ctx, next, k.wake)
			continue
		}
		k.sleep(ctx, retry, nil)
		retry = min(2*retry, k.options.Interval)
	}
}

func (k *Keeper) sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := k.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C():
	}
}

// now is the time by the hub's clock, as far as it is known.
func (k *Keeper) now() time.Time { return k.options.Clock.Now().Add(k.options.Skew()) }

// refresh adopts a kubeconfig that somebody replaced, and renews a certificate
// that is due. It returns when to check again.
func (k *Keeper) refresh(ctx context.Context) (time.Duration, error) {
	if err := k.reload(ctx); err != nil {
		return 0, err
	}
	left, err := k.left()
	if err != nil {
		return 0, err
	}
	if left > 0 {
		return min(left, k.options.Interval), nil
	}
	if since := k.options.Clock.Since(k.given); !k.given.IsZero() && since < distrust {
		return 0, errors.New("the certificate that the hub has just given is due for renewal by the clock of this machine: set the clock")
	}
	if err := k.renew(ctx); err != nil {
		return 0, fmt.Errorf("renew the certificate of the agent: %w", err)
	}
	left, err = k.left()
	return min(max(left, firstRetry), k.options.Interval), err
}

// left is how long the certificate is used before the next one is asked for.
func (k *Keeper) left() (time.Duration, error) {
	from, to, err := registration.Life(k.way.presented().Certificate)
	if err != nil {
		return 0, err
	}
	due := to.Add(-time.Duration(float64(to.Sub(from)) * k.options.Threshold))
	return due.Sub(k.now()), nil
}

// renew rotates the certificate. The new one is used only once it is stored: an agent that
// restarts has to find it.
func (k *Keeper) renew(ctx context.Context) error {
	asked := k.options.Clock.Now()
	next, err := k.options.Request(ctx, k.Config(), registration.Options{Cluster: k.options.Cluster, Expiration: registration.DefaultExpiration})
	if err != nil {
		return err
	}
	kubeconfig, err := k.kubeconfig(ctx, next)
	if err != nil {
		return err
	}
	kept := k.options.Store.Save(ctx, kubeconfig)
	if err := k.way.exchange(next); err != nil {
		return err
	}
	_, to, err := registration.Life(next.Certificate)
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("Renewed the certificate of the agent", "good until", to.UTC().Format(time.RFC3339))
	// A machine that was suspended meanwhile gets a certificate that was valid when it was requested.
	if left, err := k.left(); err == nil && left <= -k.options.Clock.Since(asked) {
		k.given = k.options.Clock.Now()
	}
	k.options.Renewed()
	if kept != nil {
		log.FromContext(ctx).Error(kept, "the new certificate is in use and cannot be kept: it is lost when the agent ends")
	}
	return nil
}

// kubeconfig returns the stored kubeconfig with other credentials in it. The rest of its
// content is read anew: somebody may have changed it.
func (k *Keeper) kubeconfig(ctx context.Context, next registration.Credentials) ([]byte, error) {
	content, err := k.options.Store.Load(ctx)
	if err != nil {
		return registration.Kubeconfig(k.way.base, k.options.Cluster, next)
	}
	config, err := clientcmd.Load(content)
	if err != nil {
		return registration.Kubeconfig(k.way.base, k.options.Cluster, next)
	}
	used := config.Contexts[cmp.Or(k.options.Context, config.CurrentContext)]
	if used == nil || config.AuthInfos[used.AuthInfo] == nil || config.Clusters[used.Cluster] == nil {
		return registration.Kubeconfig(k.way.base, k.options.Cluster, next)
	}
	user := config.AuthInfos[used.AuthInfo]
	user.ClientCertificate, user.ClientKey = "", ""
	user.ClientCertificateData, user.ClientKeyData = next.Certificate, next.Key
	if content, err = clientcmd.Write(*config); err != nil {
		return nil, fmt.Errorf("write the kubeconfig of the agent: %w", err)
	}
	return content, nil
}

// reload adopts another certificate, and another CA bundle of the hub, that the
// kubeconfig holds now: the cluster was registered anew, or the hub's authority is
// being replaced.
func (k *Keeper) reload(ctx context.Context) error {
	content, err := k.options.Store.Load(ctx)
	if err != nil {
		return nil //nolint:nilerr // what is in use is good, wherever it is kept
	}
	config, err := clientcmd.Load(content)
	if err != nil {
		return nil //nolint:nilerr // somebody is writing it
	}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(*config, k.options.Context, nil, nil).ClientConfig()
	if err != nil {
		return nil //nolint:nilerr // as before
	}
	if known, err := k.way.trusts(cfg); err == nil && !known && k.way.trust(cfg) == nil {
		log.FromContext(ctx).Info("Took over what the kubeconfig says now of the hub's authority")
		k.options.Renewed()
	}
	found, ok, err := credentialsOf(cfg)
	if err != nil || !ok || bytes.Equal(found.Certificate, k.way.presented().Certificate) {
		return nil //nolint:nilerr // as before
	}
	theirs, err := leaf(found)
	if err != nil {
		return nil //nolint:nilerr // as before
	}
	ours, err := leaf(k.way.presented())
	cluster, is := identity.ClusterOfAgent(theirs.Subject.CommonName)
	if err != nil || !is || cluster != k.options.Cluster || !newer(theirs, ours) {
		return err
	}
	if err := k.way.exchange(found); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Took over the certificate that the kubeconfig holds now", "good until", theirs.NotAfter.UTC().Format(time.RFC3339))
	k.options.Renewed()
	return nil
}

// newer reports whether a certificate was issued after another one, whatever their lifetimes.
func newer(a, b *x509.Certificate) bool {
	return a.NotBefore.After(b.NotBefore) || a.NotBefore.Equal(b.NotBefore) && a.NotAfter.After(b.NotAfter)
}

// report logs an error when it changes.
func (k *Keeper) report(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != k.reported {
		log.FromContext(ctx).Error(err, "the certificate of the agent is not renewed yet")
	}
	k.reported = text
}
