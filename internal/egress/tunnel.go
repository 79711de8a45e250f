package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/proxy"
)

// Tunnel connects to a host, given as host:port, by a tenant's proxy. Errors: NotAllowedError about the host,
// before anything is sent; a ProxyError, which may be one about the proxy.
func (d Dialer) Tunnel(ctx context.Context, by *url.URL, address string) (net.Conn, error) {
	if err := behind(ctx, d.Resolve, address); err != nil {
		return nil, err
	}
	conn, err := d.tunnel(ctx, by, address)
	if err != nil {
		return nil, &ProxyError{Tenant: true, Err: Fault(err)}
	}
	return conn, nil
}

func (d Dialer) tunnel(ctx context.Context, by *url.URL, address string) (net.Conn, error) {
	if by.Scheme == "socks5" {
		return d.socks(ctx, by, address)
	}
	conn, err := d.dialProxyURL(ctx, by, true)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	out, err := connect(conn, by, address)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return out, nil
}

// forward dials a tenant's proxy for the client of SOCKS.
type forward func(ctx context.Context, network, address string) (net.Conn, error)

// Dial is not used: there is a context.
func (f forward) Dial(string, string) (net.Conn, error) { return nil, ErrAnswer }

// DialContext connects to the proxy.
func (f forward) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return f(ctx, network, address)
}

func (d Dialer) socks(ctx context.Context, by *url.URL, address string) (net.Conn, error) {
	var auth *proxy.Auth
	if by.User != nil {
		password, _ := by.User.Password()
		auth = &proxy.Auth{User: by.User.Username(), Password: password}
	}
	client, err := proxy.SOCKS5("tcp", HostPort(by), auth, forward(d.DialContext))
	if err != nil {
		return nil, err
	}
	dialer, ok := client.(proxy.ContextDialer)
	if !ok {
		return nil, ErrAnswer
	}
	return dialer.DialContext(ctx, "tcp", address)
}

// dialProxyURL connects to an http or https proxy.
func (d Dialer) dialProxyURL(ctx context.Context, by *url.URL, tenant bool) (net.Conn, error) {
	conn, err := d.dialProxy(ctx, "tcp", HostPort(by), tenant)
	if err != nil || by.Scheme != "https" {
		return conn, err
	}
	secure := tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: by.Hostname()})
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// dialProxy connects to a proxy. Where an administrator has put theirs is not judged.
func (d Dialer) dialProxy(ctx context.Context, network, address string, tenant bool) (net.Conn, error) {
	if tenant {
		return d.DialContext(ctx, network, address)
	}
	return d.try(ctx, network, address, true)
}

// maxConnectAnswer bounds what a proxy says before the connection begins, in bytes.
const maxConnectAnswer = 16 << 10

// connect asks a proxy for a connection to a host.
func connect(conn net.Conn, by *url.URL, address string) (net.Conn, error) {
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if by.User != nil {
		password, _ := by.User.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(by.User.Username()+":"+password)))
	}
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: conn, N: maxConnectAnswer}
	in := bufio.NewReader(limited)
	resp, err := http.ReadResponse(in, req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, proxyRefusal(resp.StatusCode)
	}
	limited.N = math.MaxInt64
	return &tunneled{Conn: conn, in: in}, nil
}

// tunneled is a connection of which the beginning may have been read with the proxy's answer.
type tunneled struct {
	net.Conn
	in io.Reader
}

// Read reads what the host sends.
func (t *tunneled) Read(p []byte) (int, error) { return t.in.Read(p) }
