package credentials

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/flotilla-io/flotilla/internal/registration"
)

// connection is a connection to the hub whose client certificate and CA bundle can be
// exchanged.
type connection struct {
	config *rest.Config // with the present certificate
	base   *rest.Config // as the kubeconfig had it
	dialer *connrotation.Dialer
	next   atomic.Pointer[http.Transport]

	mu          sync.Mutex
	credentials registration.Credentials
	certificate *tls.Certificate
}

const (
	dialTimeout      = 30 * time.Second
	handshakeTimeout = 10 * time.Second
	idleConnections  = 25
)

// connect returns a connection that uses a certificate in place of the config's own.
func connect(cfg *rest.Config, c registration.Credentials) (*connection, error) {
	out := &connection{dialer: connrotation.NewDialer((&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext)}
	if err := out.use(c); err != nil {
		return nil, err
	}
	if err := out.trust(cfg); err != nil {
		return nil, err
	}
	out.config = rest.AnonymousClientConfig(cfg)
	if !strings.Contains(out.config.Host, "://") {
		out.config.Host = "https://" + out.config.Host
	}
	out.config.TLSClientConfig, out.config.Proxy, out.config.Dial = rest.TLSClientConfig{}, nil, nil
	out.config.Transport = out
	return out, nil
}

// trust verifies the hub against the CA bundle of a config from now on. Connections that
// were verified against the old one are closed.
func (c *connection) trust(cfg *rest.Config) error {
	base := rest.CopyConfig(cfg)
	if err := rest.LoadTLSFiles(base); err != nil {
		return fmt.Errorf("read the authority of the hub: %w", err)
	}
	verify, err := rest.TLSConfigFor(rest.AnonymousClientConfig(base))
	if err != nil {
		return fmt.Errorf("read the authority of the hub: %w", err)
	}
	if verify == nil {
		verify = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	verify.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.current(), nil }
	proxy := http.ProxyFromEnvironment
	if cfg.Proxy != nil {
		proxy = cfg.Proxy
	}
	c.base = base
	old := c.next.Swap(utilnet.SetTransportDefaults(&http.Transport{
		Proxy:               proxy,
		TLSHandshakeTimeout: handshakeTimeout,
		TLSClientConfig:     verify,
		MaxIdleConnsPerHost: idleConnections,
		DialContext:         c.dialer.DialContext,
		DisableCompression:  cfg.DisableCompression,
	}))
	if old != nil {
		c.dialer.CloseAll()
		old.CloseIdleConnections()
	}
	return nil
}

// trusts reports whether a config has the CA bundle that is in use.
func (c *connection) trusts(cfg *rest.Config) (bool, error) {
	loaded := rest.CopyConfig(cfg)
	if err := rest.LoadTLSFiles(loaded); err != nil {
		return false, fmt.Errorf("read the authority of the hub: %w", err)
	}
	return bytes.Equal(loaded.CAData, c.base.CAData) && loaded.ServerName == c.base.ServerName && loaded.Insecure == c.base.Insecure, nil
}

// RoundTrip implements http.RoundTripper.
func (c *connection) RoundTrip(req *http.Request) (*http.Response, error) {
	return c.next.Load().RoundTrip(req)
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (c *connection) WrappedRoundTripper() http.RoundTripper { return c.next.Load() }

var _ utilnet.RoundTripperWrapper = (*connection)(nil)

// use makes the next connections with other credentials.
func (c *connection) use(next registration.Credentials) error {
	pair, err := tls.X509KeyPair(next.Certificate, next.Key)
	if err != nil {
		return fmt.Errorf("the certificate and the key of the agent do not fit: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.credentials, c.certificate = next, &pair
	return nil
}

func (c *connection) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.certificate
}

func (c *connection) presented() registration.Credentials {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.credentials
}

// exchange switches to other credentials at once: connections that use the old ones are closed.
func (c *connection) exchange(next registration.Credentials) error {
	if err := c.use(next); err != nil {
		return err
	}
	c.dialer.CloseAll()
	return nil
}

// credentialsOf reads the client certificate of a config; none is no error.
func credentialsOf(cfg *rest.Config) (registration.Credentials, bool, error) {
	loaded := rest.CopyConfig(cfg)
	if err := rest.LoadTLSFiles(loaded); err != nil {
		return registration.Credentials{}, false, fmt.Errorf("read the certificate of the agent: %w", err)
	}
	out := registration.Credentials{Certificate: loaded.CertData, Key: loaded.KeyData}
	return out, len(bytes.TrimSpace(out.Certificate)) > 0, nil
}

// leaf reads the certificate itself.
func leaf(c registration.Credentials) (*x509.Certificate, error) {
	pair, err := tls.X509KeyPair(c.Certificate, c.Key)
	if err != nil {
		return nil, err
	}
	if pair.Leaf != nil {
		return pair.Leaf, nil
	}
	if len(pair.Certificate) == 0 {
		return nil, errors.New("there is no certificate")
	}
	return x509.ParseCertificate(pair.Certificate[0])
}
