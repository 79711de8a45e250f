package proxy

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/addresses"
	"github.com/flotilla-io/flotilla/internal/members"
)

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	// headerTimeout is how long a member may take before it begins to answer.
	// Watches and logs begin at once.
	headerTimeout = 2 * time.Minute
	idleTimeout   = 90 * time.Second
	// keepAlive is how long a connection may be idle before it is pinged,
	// silence how long the answer to that may take.
	keepAlive = 30 * time.Second
	silence   = 15 * time.Second
	// mostHeaders bounds the headers of a member's answer, in bytes.
	mostHeaders = 256 << 10
	// mostIdle bounds the idle connections to one member.
	mostIdle = 8
)

// A link is the transport to one cluster: its connections, and whether the server
// there has proved to be the cluster. It holds no credentials.
type link struct {
	cluster string
	id      string // that the cluster was registered with; empty for none
	print   string
	base    *url.URL
	secured bool // the certificate is checked
	pinned  bool // by a CA that was registered with the cluster
	plain   *http.Transport
	upgrade *http.Transport // HTTP/1.1, one connection each
	proof   proof
	traffic traffic
}

// dialing decides which addresses may be dialed.
type dialing struct{ loopback bool }

// link returns the transport to a cluster. It sends nothing.
func (d dialing) link(cluster *clusterv1alpha1.Cluster, creds credentials, print string) (*link, error) {
	target, err := members.TargetOf(cluster, &corev1.Secret{Data: map[string][]byte{
		clusterv1alpha1.SecretTokenKey:  []byte(creds.impersonator), // stays with the credentials
		clusterv1alpha1.SecretCADataKey: creds.ca,
	}})
	if err != nil {
		return nil, unavailable(cluster.Name, "%v", err)
	}
	base, err := url.Parse(target.Config.Host)
	if err != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, unavailable(cluster.Name, "spec.apiEndpoint is not the address of a cluster")
	}
	if err := d.refuseLiteral(base.Hostname()); err != nil {
		return nil, badGateway(cluster.Name, "its address is refused: %s %v", base.Hostname(), err)
	}
	secured, err := rest.TLSConfigFor(target.Config)
	if err != nil {
		return nil, unavailable(cluster.Name, "its CA cannot be read: check %s in secret %s/%s", clusterv1alpha1.SecretCADataKey, creds.of.own.Namespace, creds.of.own.Name)
	}
	if secured == nil {
		secured = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	secured.MinVersion = tls.VersionTLS12
	l := &link{
		cluster: cluster.Name, id: target.ID, print: print, base: base,
		secured: !target.Config.Insecure, pinned: !target.Config.Insecure && len(target.Config.CAData) > 0,
	}
	l.plain, l.upgrade = d.transport(target.Config, secured.Clone()), d.transport(target.Config, secured.Clone())
	h2, err := http2.ConfigureTransports(l.plain)
	if err != nil {
		return nil, badGateway(cluster.Name, "connect: %v", err)
	}
	h2.MaxHeaderListSize, h2.ReadIdleTimeout, h2.PingTimeout = mostHeaders, keepAlive, silence
	l.upgrade.TLSClientConfig.NextProtos = []string{"http/1.1"}
	l.upgrade.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	l.upgrade.DisableKeepAlives = true
	return l, nil
}

func (d dialing) transport(config *rest.Config, secured *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive, Control: d.refuseAddress}
	out := &http.Transport{
		Proxy:                  config.Proxy,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        secured,
		TLSHandshakeTimeout:    handshakeTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    mostIdle,
		MaxResponseHeaderBytes: mostHeaders,
		DisableCompression:     true, // the caller's Accept-Encoding passes unchanged
	}
	if config.Proxy == nil {
		out.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } // not the environment's
	}
	if config.WrapTransport != nil {
		config.WrapTransport(out) // headers for the proxy on the way
	}
	return out
}

// refuseAddress is called with every address that is dialed, after names have
// been resolved.
func (d dialing) refuseAddress(network, address string, raw syscall.RawConn) error {
	if err := addresses.Refuse(network, address, raw); err != nil {
		return err
	}
	at, err := netip.ParseAddrPort(address)
	if err == nil && !d.loopback && addresses.Plain(at.Addr()).IsLoopback() {
		return fmt.Errorf("%s %w", address, errLoopback)
	}
	return nil
}

// refuseLiteral checks an IP address in the URL: with a proxy in between
// it is not the hub that dials it, so refuseAddress never sees it.
func (d dialing) refuseLiteral(host string) error {
	at, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return nil // a name
	case addresses.Reserved(at):
		return addresses.ErrReserved
	case !d.loopback && addresses.Plain(at).IsLoopback():
		return errLoopback
	}
	return nil
}

// close cancels requests in flight and closes the connections.
func (l *link) close() {
	l.traffic.end()
	l.plain.CloseIdleConnections()
	l.upgrade.CloseIdleConnections()
}

// fingerprint identifies all that a link was made of: a link with another one is replaced.
func fingerprint(cluster *clusterv1alpha1.Cluster, creds credentials) string {
	spec := &cluster.Spec
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q %q %q %t %q %q %q %q", cluster.UID, spec.ID, spec.APIEndpoint, spec.InsecureSkipTLSVerification, spec.ProxyURL, spec.ProxyHeader,
		cluster.Annotations[clusterv1alpha1.TLSServerNameAnnotation], creds.ca)
	return string(sum.Sum(nil))
}
