// Package target connects to the clusters that spec.kubeConfig of Kustomizations leads to, which are outside of the fleet.
//
// In go a Kustomization, and who reads its Secret; out comes a Target that acts in that cluster, or what is wrong with the
// kubeconfig, and the next step. Of a kubeconfig only what stands in it counts: no program is run for it, no file is read, and its
// server is reached only where sources may be, over TLS that is verified. Connections are kept as long as a Kustomization uses
// them and the Secret does not change. The package writes nothing, and watches nothing.
package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/refusals"
)

const (
	// requestTimeout bounds each request, as a cluster that does not answer must not hold a worker. Nothing is watched.
	requestTimeout = 30 * time.Second
	// mostBytes is the longest answer that is read.
	mostBytes = 64 << 20
	// qps and burst bound the requests to one cluster.
	qps, burst = 50, 100
)

// keys are those of the Secret in which a kubeconfig is looked for if spec.kubeConfig names none.
var keys = []string{"value", "value.yaml"}

// Target is a cluster outside of the fleet, or the control plane.
type Target struct {
	// Place says which one it is.
	inventory.Place
	// Client acts there.
	client.Client
	// Applier applies there.
	Applier *applier.Applier
}

// Remote reports whether it is not the control plane.
func (t Target) Remote() bool { return t.Place != inventory.Place{} }

// Explain returns an error of what was done in the cluster, of the same class, with the name of the cluster. What the server says
// is never taken for advice of our own.
func (t *Target) Explain(err error) error {
	if err == nil {
		return nil
	}
	if outcome := (*loop.Error)(nil); errors.As(err, &outcome) {
		explained := *outcome
		explained.Err = t.named(outcome.Err)
		return &explained
	}
	return t.named(err)
}

func (t *Target) named(err error) error {
	if text := err.Error(); tenancy.Foreign(text) != text {
		err = errors.New(tenancy.Foreign(text))
	}
	return fmt.Errorf("%s: %w", t.Place, err)
}

// Targets are the clusters that Kustomizations lead to. Use New.
type Targets struct {
	scheme  *runtime.Scheme
	dialer  egress.Dialer
	applier applier.Options

	mu   sync.Mutex
	kept map[identity]*connection
}

// New returns Targets whose servers the dialer reaches. The options are for their Appliers.
func New(scheme *runtime.Scheme, dialer egress.Dialer, options applier.Options) *Targets {
	options.Remote = true
	return &Targets{scheme: scheme, dialer: dialer, applier: options, kept: map[identity]*connection{}}
}

// identity is what a connection is made from.
type identity struct {
	secret  client.ObjectKey
	key, as string
}

// connection is a Target that is kept.
type connection struct {
	uid     types.UID
	version string
	target  *Target
	users   map[client.ObjectKey]bool
	close   func()
}

// Forget drops the connection of a Kustomization that is gone, unless another one uses it.
func (t *Targets) Forget(user client.ObjectKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.release(user, identity{})
}

// release drops the connections of a user but the given one.
func (t *Targets) release(user client.ObjectKey, but identity) {
	for of, c := range t.kept {
		if of == but || !c.users[user] {
			continue
		}
		if delete(c.users, user); len(c.users) == 0 {
			c.close()
			delete(t.kept, of)
			continue
		}
		c.target.Applier.Forget(user)
	}
}

// Of returns the cluster that spec.kubeConfig.secretRef of a Kustomization leads to. It reads the Secret as the account that acts
// for the Kustomization, and asks the cluster nothing. Errors: those of reading the Secret; of class loop.ClassWaiting, about a
// Secret that does not exist, or from which no connection can be made.
func (t *Targets) Of(ctx context.Context, ks *kustomizev1.Kustomization, as client.Reader) (*Target, error) {
	refuse := func(err error) error {
		return loop.Waiting(refusals.InvalidKubeConfig, intervals.Retry(ks), err)
	}
	if ks.Spec.KubeConfig == nil || ks.Spec.KubeConfig.SecretRef == nil {
		return nil, refuse(errors.New("spec.kubeConfig names no Secret: set spec.kubeConfig.secretRef.name"))
	}
	ref := ks.Spec.KubeConfig.SecretRef
	at := client.ObjectKey{Namespace: ks.Namespace, Name: ref.Name}
	var secret corev1.Secret
	err := as.Get(ctx, at, &secret)
	if apierrors.IsNotFound(err) {
		return nil, refuse(fmt.Errorf("the Secret %s does not exist: create it, with a kubeconfig under the key %s, or correct spec.kubeConfig.secretRef", at, cmp.Or(ref.Key, keys[0])))
	}
	if err != nil {
		return nil, fmt.Errorf("read the Secret %s: %w", at, err)
	}
	of := identity{secret: at, key: ref.Key}
	if ks.Spec.ServiceAccountName != "" {
		of.as = "system:serviceaccount:" + ks.Namespace + ":" + ks.Spec.ServiceAccountName
	}
	found, err := t.connect(client.ObjectKeyFromObject(ks), of, &secret)
	if err != nil {
		return nil, refuse(fmt.Errorf("the Secret %s: %w", at, err))
	}
	return found, nil
}

// connect returns the connection for a Secret, which is made if there is none, or the Secret has changed.
func (t *Targets) connect(user client.ObjectKey, of identity, secret *corev1.Secret) (*Target, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.release(user, of)
	have := t.kept[of]
	if have != nil && have.uid == secret.UID && have.version == secret.ResourceVersion {
		have.users[user] = true
		return have.target, nil
	}
	config, err := read(secret, of.key)
	if err != nil {
		return nil, err
	}
	if of.as != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: of.as}
	}
	next, err := t.open(config, inventory.Place{Server: config.Host, Secret: secret.Name})
	if err != nil {
		return nil, err
	}
	next.uid, next.version, next.users = secret.UID, secret.ResourceVersion, map[client.ObjectKey]bool{user: true}
	if have != nil { // of the Secret as it was before; whoever uses it at this moment ends with it
		next.users = have.users
		next.users[user] = true
		have.close()
	}
	t.kept[of] = next
	return next.target, nil
}

// read returns the kubeconfig in a Secret; key is empty for the usual ones.
func read(secret *corev1.Secret, key string) (*rest.Config, error) {
	among := keys
	if key != "" {
		among = []string{key}
	}
	for _, key := range among {
		raw, has := secret.Data[key]
		if !has {
			continue
		}
		config, err := Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("the kubeconfig under %s: %w", key, err)
		}
		return config, nil
	}
	return nil, fmt.Errorf("it has no key %s: put a kubeconfig there, or name its key in spec.kubeConfig.secretRef.key", among[0])
}

// open makes clients for a connection. It sends nothing.
func (t *Targets) open(config *rest.Config, place inventory.Place) (*connection, error) {
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	trust, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, errors.New("its certificates or keys cannot be read: correct certificate-authority-data, client-certificate-data and client-key-data")
	}
	guard := &egress.Guard{Origin: net.JoinHostPort(server.Hostname(), cmp.Or(server.Port(), "443")), Dialer: t.dialer}
	transport := t.dialer.Transport(egress.Way{Judge: guard.Judge, TLS: trust})
	config.TLSClientConfig = rest.TLSClientConfig{} // it is in the transport
	config.Transport, config.Timeout, config.QPS, config.Burst = bounded{transport}, requestTimeout, qps, burst
	connected, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, connected)
	if err != nil {
		return nil, err
	}
	acts, err := client.New(config, client.Options{HTTPClient: connected, Scheme: t.scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	return &connection{target: &Target{Place: place, Client: acts, Applier: applier.New(acts, mapper, t.applier)}, close: transport.CloseIdleConnections}, nil
}

// bounded sends requests and ends answers that are too long.
type bounded struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err == nil {
		resp.Body = &body{ReadCloser: resp.Body, left: mostBytes}
	}
	return resp, err
}

// body is an answer, of which so many bytes are left to read.
type body struct {
	io.ReadCloser
	left int64
}

var errTooLong = fmt.Errorf("the answer has more than %d MiB", mostBytes>>20)

// Read reads from the answer.
func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if b.left -= int64(n); b.left < 0 {
		return n, errTooLong
	}
	return n, err
}
