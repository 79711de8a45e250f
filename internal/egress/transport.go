package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"
)

// Way is how the requests of one client leave.
type Way struct {
	// Judge decides whether a host, given as host:port, may be reached, and returns where it is; nil means Dialer.Resolve. It
	// may allow less than that.
	Judge func(ctx context.Context, address string) ([]netip.AddrPort, error)
	// TLS is for the servers; nil means the system's authorities.
	TLS *tls.Config
	// Proxy is a tenant's proxy; nil means those of the Dialer, if it has any.
	Proxy *url.URL
}

// Transport sends requests to hosts that a Way allows, directly or by a proxy. It keeps a few idle connections, and may be
// used from several goroutines.
type Transport struct {
	dialer Dialer
	way    Way
	direct *http.Transport

	mu sync.Mutex
	by map[string]*http.Transport // by the URL of the proxy
}

const (
	// Bounds of idle connections.
	idle, idlePerHost = 4, 2
	idleTimeout       = 90 * time.Second
)

// Transport returns a Transport.
func (d Dialer) Transport(way Way) *Transport {
	if way.Judge == nil {
		way.Judge = d.Resolve
	}
	if way.TLS == nil {
		way.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t := &Transport{dialer: d, way: way, by: map[string]*http.Transport{}}
	t.direct = t.plain()
	t.direct.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		at, err := way.Judge(ctx, address)
		if err != nil {
			return nil, err
		}
		return d.Connect(ctx, network, address, at)
	}
	return t
}

func (t *Transport) plain() *http.Transport {
	return &http.Transport{
		TLSClientConfig: t.way.TLS.Clone(), ForceAttemptHTTP2: true,
		MaxIdleConns: idle, MaxIdleConnsPerHost: idlePerHost, IdleConnTimeout: idleTimeout,
	}
}

// RoundTrip sends a request. Errors: NotAllowedError before anything is sent, a ProxyError, or what the network returns.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	proxy, err := t.proxyFor(req.URL)
	if err == nil && proxy == nil {
		return t.direct.RoundTrip(req)
	}
	if err == nil {
		err = behind(req.Context(), t.way.Judge, HostPort(req.URL))
	}
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	resp, err := t.through(proxy).RoundTrip(req)
	if err != nil {
		return nil, t.fault(err)
	}
	if resp.StatusCode == http.StatusProxyAuthRequired {
		_ = resp.Body.Close()
		return nil, &ProxyError{Tenant: t.way.Proxy != nil, Err: proxyRefusal(resp.StatusCode)}
	}
	return resp, nil
}

// CloseIdleConnections closes connections that are not in use; http.Client calls it.
func (t *Transport) CloseIdleConnections() {
	t.direct.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, by := range t.by {
		by.CloseIdleConnections()
	}
}

func (t *Transport) proxyFor(to *url.URL) (*url.URL, error) {
	if t.way.Proxy != nil || t.dialer.Proxies == nil {
		return t.way.Proxy, nil
	}
	return t.dialer.Proxies(to)
}

// lookupTimeout is how long a host behind a proxy is looked up: where nothing leads outside but the proxy, resolvers may never
// answer.
const lookupTimeout = 2 * time.Second

// behind judges a host that is reached by a proxy. One that is not known here is for the proxy to find.
func behind(ctx context.Context, judge func(context.Context, string) ([]netip.AddrPort, error), address string) error {
	lookup, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	if _, err := judge(lookup, address); err != nil && !IsAbsent(err) {
		return err
	}
	return ctx.Err()
}

// through returns the transport that goes by a proxy.
func (t *Transport) through(proxy *url.URL) *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if by, found := t.by[proxy.String()]; found {
		return by
	}
	by := t.plain()
	by.Proxy = http.ProxyURL(proxy)
	by.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return t.dialer.dialProxy(ctx, network, address, t.way.Proxy != nil)
	}
	// Only a proxy is connected to here. It gets neither the client certificate nor the trust that are for the server.
	by.DialTLSContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return t.dialer.dialProxyURL(ctx, proxy, t.way.Proxy != nil)
	}
	by.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
		if resp.StatusCode == http.StatusOK {
			return nil
		}
		return &ProxyError{Tenant: t.way.Proxy != nil, Err: proxyRefusal(resp.StatusCode)}
	}
	t.by[proxy.String()] = by
	return by
}

// fault says of an error on the way to a proxy that it is about that.
func (t *Transport) fault(err error) error {
	var on *net.OpError
	if errors.As(err, &on) && (on.Op == "proxyconnect" || on.Op == "socks connect") {
		return &ProxyError{Tenant: t.way.Proxy != nil, Err: Fault(on.Err)}
	}
	return err
}
