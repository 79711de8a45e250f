package egress_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/egress"
)

// canary is what a proxy says, and nobody is to see.
const canary = "CANARY-2c9e"

// proxied is a proxy that leads every name to one server, and remembers what it was asked for.
type proxied struct {
	address string
	to      string // host:port of the server
	refuse  int    // HTTP status of its refusals; 0 for none

	mu    sync.Mutex
	asked []string
}

func (p *proxied) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, what)
}

// take returns what it was asked for since the last call.
func (p *proxied) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.asked
	p.asked = nil
	return out
}

// ServeHTTP serves CONNECT, and requests with the whole URL.
func (p *proxied) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.note(r.Method + " " + r.RequestURI + " " + r.Header.Get("Proxy-Authorization"))
	if p.refuse != 0 {
		http.Error(w, canary, p.refuse)
		return
	}
	to, err := net.Dial("tcp", p.to)
	if err != nil {
		http.Error(w, canary, http.StatusBadGateway)
		return
	}
	defer to.Close()
	if r.Method != http.MethodConnect {
		_ = r.Write(to)
		resp, err := http.ReadResponse(bufio.NewReader(to), r)
		if err != nil {
			http.Error(w, canary, http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	join(conn, rw, to)
}

func join(conn net.Conn, in io.Reader, to net.Conn) {
	go func() {
		_, _ = io.Copy(to, in)
		_ = to.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(conn, to)
}

// socks serves SOCKS5 with a username and password, or without.
func (p *proxied) socks(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				p.serveSOCKS(conn)
			}()
		}
	}()
	return "socks5://" + l.Addr().String()
}

func (p *proxied) serveSOCKS(conn net.Conn) {
	read := func(n int) []byte {
		out := make([]byte, n)
		if _, err := io.ReadFull(conn, out); err != nil {
			return make([]byte, n)
		}
		return out
	}
	methods := read(int(read(2)[1]))
	user := ""
	if strings.Contains(string(methods), "\x02") {
		_, _ = conn.Write([]byte{5, 2})
		name := read(int(read(2)[1]))
		password := read(int(read(1)[0]))
		user = fmt.Sprintf("%s:%s", name, password)
		_, _ = conn.Write([]byte{1, 0})
	} else {
		_, _ = conn.Write([]byte{5, 0})
	}
	host := ""
	switch head := read(4); head[3] {
	case 1:
		host = netip.AddrFrom4([4]byte(read(4))).String()
	case 3:
		host = string(read(int(read(1)[0])))
	}
	port := binary.BigEndian.Uint16(read(2))
	p.note(fmt.Sprintf("SOCKS %s:%d %s", host, port, user))
	to, err := net.Dial("tcp", p.to)
	if err != nil || p.refuse != 0 {
		_, _ = conn.Write([]byte{5, 2, 0, 1, 0, 0, 0, 0, 0, 0})
		return
	}
	defer to.Close()
	_, _ = conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	join(conn, conn, to)
}

// names resolves what the tests name.
func names(_ context.Context, _, host string) ([]netip.Addr, error) {
	switch host {
	case "public.example":
		return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
	case "inner.example":
		return []netip.Addr{netip.MustParseAddr("10.1.2.3")}, nil
	case "broken.example":
		return nil, &net.DNSError{Err: "server misbehaving", Name: host, IsTemporary: true}
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// always is an environment that names one proxy for everything.
func always(t *testing.T, raw string) func(*url.URL) (*url.URL, error) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return func(*url.URL) (*url.URL, error) { return u, nil }
}

// loopback allows the proxies of these tests where a tenant names them.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func TestProxies(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "reached "+r.Host) }))
	t.Cleanup(server.Close)
	p := &proxied{to: strings.TrimPrefix(server.URL, "http://")}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	socks := p.socks(t)
	user := func(proxy string) string { return strings.Replace(proxy, "://", "://bot:secret@", 1) }
	const basic = "Basic Ym90OnNlY3JldA=="
	cases := map[string]struct {
		environment, tenant string
		closed              bool // the networks that tenants may name are none
		url                 string
		refuse              int
		want                string   // the body, or what the error says
		asked               []string // of the proxy
		err                 error
	}{
		"the environment's": {
			environment: front.URL, closed: true, url: "http://public.example/x", want: "reached public.example", asked: []string{"GET http://public.example/x "},
		},
		"the environment's, with a password": {
			environment: user(front.URL), closed: true, url: "http://public.example/x", want: "reached public.example", asked: []string{"GET http://public.example/x " + basic},
		},
		"the environment's, by SOCKS": {
			environment: user(socks), closed: true, url: "http://public.example/x", want: "reached public.example", asked: []string{"SOCKS public.example:80 bot:secret"},
		},
		"a name that is known to the proxy alone": {
			environment: front.URL, url: "http://behind.example/x", want: "reached behind.example", asked: []string{"GET http://behind.example/x "},
		},
		"a name that cannot be looked up here": {
			environment: front.URL, url: "http://broken.example/x", want: "reached broken.example", asked: []string{"GET http://broken.example/x "},
		},
		"a private address":                  {environment: front.URL, url: "http://10.1.2.3/x", err: egress.ErrNotAllowed, want: "10.1.2.3 leads to a private address"},
		"the metadata of a cloud":            {environment: front.URL, url: "http://169.254.169.254/x", err: egress.ErrNotAllowed, want: "link-local"},
		"loopback, where it is not allowed":  {environment: front.URL, closed: true, url: "http://127.0.0.1:1/x", err: egress.ErrNotAllowed, want: "loopback"},
		"a name that leads within":           {environment: front.URL, url: "http://inner.example/x", err: egress.ErrNotAllowed, want: "inner.example is not there, or leads to"},
		"a private address, by a tenant's":   {tenant: front.URL, url: "http://10.1.2.3/x", err: egress.ErrNotAllowed, want: "a private address"},
		"a tenant's":                         {tenant: user(front.URL), url: "http://public.example/x", want: "reached public.example", asked: []string{"GET http://public.example/x " + basic}},
		"a tenant's comes before":            {tenant: socks, environment: "http://127.0.0.1:1", url: "http://public.example/x", want: "reached public.example", asked: []string{"SOCKS public.example:80 "}},
		"a tenant's that may not be there":   {tenant: front.URL, closed: true, url: "http://public.example/x", err: egress.ErrNotAllowed, want: "the proxy of the Secret: address not allowed: 127.0.0.1 leads to a loopback address"},
		"a tenant's at the metadata":         {tenant: "http://169.254.169.254", url: "http://public.example/x", err: egress.ErrNotAllowed, want: "the proxy of the Secret: address not allowed: 169.254.169.254 leads to a link-local"},
		"one that is not there":              {environment: "http://127.0.0.1:1", url: "http://public.example/x", want: "the proxy of the environment (HTTPS_PROXY, HTTP_PROXY): connection refused"},
		"one that wants a password":          {environment: front.URL, refuse: 407, url: "http://public.example/x", err: egress.ErrProxyUnauthorized, want: "HTTP 407", asked: []string{"GET http://public.example/x "}},
		"one that wants a password for TLS":  {tenant: front.URL, refuse: 407, url: "https://public.example/x", err: egress.ErrProxyUnauthorized, want: "the proxy of the Secret: it wants a username", asked: []string{"CONNECT public.example:443 "}},
		"one that refuses":                   {environment: front.URL, refuse: 403, url: "https://public.example/x", err: egress.ErrProxyRefuses, want: "HTTP 403", asked: []string{"CONNECT public.example:443 "}},
		"one that is not trusted":            {environment: tlsProxy(t, p), url: "http://public.example/x", err: egress.ErrCertificate, want: "the proxy of the environment (HTTPS_PROXY, HTTP_PROXY): x509: certificate"},
		"one by SOCKS that refuses":          {environment: socks, refuse: 403, url: "http://public.example/x", want: "the proxy of the environment", asked: []string{"SOCKS public.example:80 "}},
		"none, and so a name must be known":  {url: "http://behind.example/x", err: egress.ErrNotAllowed, want: "behind.example is not there"},
		"a server that answers without TLS":  {environment: front.URL, url: "https://public.example/x", want: "server gave HTTP response", asked: []string{"CONNECT public.example:443 "}},
		"the control plane's own, literally": {environment: front.URL, url: "http://127.0.0.1:4321/x", err: egress.ErrNotAllowed, want: "the control plane itself"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p.refuse = tc.refuse
			d := egress.Dialer{Networks: loopback, LookupNetIP: names, Own: []string{":4321"}}
			if tc.closed {
				d.Networks = nil
			}
			if tc.environment != "" {
				d.Proxies = always(t, tc.environment)
			}
			way := egress.Way{}
			if tc.tenant != "" {
				way.Proxy, _ = always(t, tc.tenant)(nil)
			}
			body, err := get(t.Context(), d.Transport(way), tc.url)
			if (err != nil) != (body == "") || tc.err != nil && !errors.Is(err, tc.err) {
				t.Fatalf("%q, %v; want %v", body, err, tc.err)
			}
			if err != nil {
				body = egress.Fault(err).Error()
				if errors.Is(err, http.ErrSchemeMismatch) {
					body = err.Error()
				}
			}
			if !strings.Contains(body, tc.want) || strings.Contains(body, canary) || strings.Contains(body, "secret") {
				t.Errorf("%q, want %q", body, tc.want)
			}
			if diff := cmp.Diff(tc.asked, p.take()); diff != "" {
				t.Errorf("what the proxy was asked for (-want +got):\n%s", diff)
			}
		})
	}
}

// tlsProxy serves the proxy with a certificate that nobody vouches for.
func tlsProxy(t *testing.T, p *proxied) string {
	t.Helper()
	s := httptest.NewTLSServer(p)
	t.Cleanup(s.Close)
	return s.URL
}

func get(ctx context.Context, by *egress.Transport, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Client{Transport: by}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// TestTheProxyGetsNoCertificate checks that a client certificate and trust that are for a server are not for an https proxy.
func TestTheProxyGetsNoCertificate(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "reached") }))
	t.Cleanup(server.Close)
	p := &proxied{to: strings.TrimPrefix(server.URL, "https://")}
	secure := tlsProxy(t, p)
	d := egress.Dialer{Networks: loopback, LookupNetIP: names}
	trusting := server.Client().Transport.(*http.Transport).TLSClientConfig // the proxy has the same authority
	by, _ := always(t, secure)(nil)
	if _, err := get(t.Context(), d.Transport(egress.Way{TLS: trusting, Proxy: by}), "https://example.com/x"); !errors.Is(err, egress.ErrCertificate) {
		t.Errorf("error = %v: the server's authority vouches for the proxy", err)
	}
	plain := httptest.NewServer(p)
	t.Cleanup(plain.Close)
	by, _ = always(t, plain.URL)(nil)
	for range 2 { // the second by the kept connection
		body, err := get(t.Context(), d.Transport(egress.Way{TLS: trusting, Proxy: by}), "https://example.com/x")
		if err != nil || body != "reached" {
			t.Errorf("%q, %v", body, err)
		}
	}
}

// TestTunnel connects by proxies as SSH does, to a server that speaks first.
func TestTunnel(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "SSH-2.0-x\r\n")
			_ = conn.Close()
		}
	}()
	p := &proxied{to: l.Addr().String()}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	endless := raw(t, "HTTP/1.1 200 OK\r\n"+strings.Repeat("X-"+canary+": y\r\n", 10_000))
	socks := p.socks(t)
	for name, tc := range map[string]struct {
		proxy, address string
		refuse         int
		want           string // what was read, or what the error says
		err            error
	}{
		"by CONNECT":                       {proxy: front.URL, address: "behind.example:22", want: "SSH-2.0-x\r\n"},
		"by SOCKS":                         {proxy: socks, address: "behind.example:22", want: "SSH-2.0-x\r\n"},
		"a greeting that comes at once":    {proxy: raw(t, "HTTP/1.1 200 OK\r\n\r\nSSH-2.0-x\r\n"), address: "behind.example:22", want: "SSH-2.0-x\r\n"},
		"a private address":                {proxy: front.URL, address: "10.1.2.3:22", err: egress.ErrNotAllowed, want: "a private address"},
		"a name that leads within":         {proxy: socks, address: "inner.example:22", err: egress.ErrNotAllowed, want: "is not there, or leads to"},
		"a proxy that may not be there":    {proxy: "socks5://10.1.2.3:1080", address: "behind.example:22", err: egress.ErrNotAllowed, want: "the proxy of the Secret: address not allowed: 10.1.2.3 leads to"},
		"a proxy that refuses":             {proxy: front.URL, refuse: 403, address: "behind.example:22", err: egress.ErrProxyRefuses, want: "HTTP 403"},
		"a proxy that wants a password":    {proxy: front.URL, refuse: 407, address: "behind.example:22", err: egress.ErrProxyUnauthorized, want: "HTTP 407"},
		"a proxy by SOCKS that refuses":    {proxy: socks, refuse: 403, address: "behind.example:22", want: "the proxy of the Secret"},
		"a proxy that is none":             {proxy: raw(t, canary+"\r\n\r\n"), address: "behind.example:22", want: "the proxy of the Secret"},
		"a proxy that says too much":       {proxy: endless, address: "behind.example:22", want: "the proxy of the Secret"},
		"a proxy by SOCKS that says else":  {proxy: strings.Replace(endless, "http", "socks5", 1), address: "behind.example:22", want: "the proxy of the Secret"},
		"a proxy where nothing is":         {proxy: "http://127.0.0.1:1", address: "behind.example:22", want: "the proxy of the Secret: connection refused"},
		"a proxy whose certificate is bad": {proxy: tlsProxy(t, p), address: "behind.example:22", err: egress.ErrCertificate, want: "the proxy of the Secret: x509"},
	} {
		t.Run(name, func(t *testing.T) {
			p.refuse = tc.refuse
			by, err := url.Parse(tc.proxy)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			conn, err := egress.Dialer{Networks: loopback, LookupNetIP: names}.Tunnel(t.Context(), by, tc.address)
			if err == nil {
				text, _ := io.ReadAll(conn)
				got = string(text)
				_ = conn.Close()
			} else {
				got = err.Error()
			}
			if !strings.Contains(got, tc.want) || strings.Contains(got, canary) || tc.err != nil && !errors.Is(err, tc.err) || tc.err == nil && err != nil && !strings.HasPrefix(tc.want, "the proxy") {
				t.Errorf("%q, %v; want %q, %v", got, err, tc.want, tc.err)
			}
		})
	}
}

// raw serves bytes to whoever connects, and returns the address as that of an http proxy.
func raw(t *testing.T, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = conn.Read(make([]byte, 4<<10)) // of what is asked for, which comes at once
				_, _ = io.WriteString(conn, answer)
				_ = conn.Close()
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

func TestEnvironment(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "proxy.example:3128")
	t.Setenv("HTTP_PROXY", "http://plain.example:3128")
	t.Setenv("NO_PROXY", "inner.example,10.0.0.0/8")
	proxies, err := egress.Environment()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, to := range []string{"https://public.example/x", "http://public.example/x", "https://git.inner.example/x", "https://10.1.2.3/x"} {
		u, _ := url.Parse(to)
		by, err := proxies(u)
		if err != nil {
			t.Fatal(err)
		}
		if by != nil {
			got[to] = by.String()
		}
	}
	want := map[string]string{"https://public.example/x": "http://proxy.example:3128", "http://public.example/x": "http://plain.example:3128"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("proxies (-want +got):\n%s", diff)
	}
	t.Setenv("HTTPS_PROXY", "ftp://"+canary+":x@proxy.example")
	if _, err := egress.Environment(); err == nil || !strings.Contains(err.Error(), "HTTPS_PROXY: it is no proxy") || strings.Contains(err.Error(), canary) {
		t.Errorf("error = %v, want one that names the variable and not its value", err)
	}
}

func TestParseProxy(t *testing.T) {
	for name, tc := range map[string]struct {
		secret     map[string]string
		want, says string
	}{
		"an address":                 {secret: map[string]string{"address": "http://proxy.example:3128\n"}, want: "http://proxy.example:3128"},
		"with a password":            {secret: map[string]string{"address": "socks5://proxy.example:1080", "username": "bot", "password": "a/b"}, want: "socks5://bot:a%2Fb@proxy.example:1080"},
		"none":                       {secret: map[string]string{"username": "bot"}, says: "key address is missing"},
		"no URL":                     {secret: map[string]string{"address": "proxy.example:" + canary}, says: "key address: it is no proxy"},
		"another scheme":             {secret: map[string]string{"address": "ftp://" + canary}, says: "key address: it is no proxy"},
		"a path":                     {secret: map[string]string{"address": "http://proxy.example/" + canary}, says: "key address: it is no proxy"},
		"a password without a user":  {secret: map[string]string{"address": "http://proxy.example", "password": canary}, says: "key password needs the key username"},
		"an address that has a user": {secret: map[string]string{"address": "http://u:p@proxy.example"}, want: "http://u:p@proxy.example"},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for k, v := range tc.secret {
				data[k] = []byte(v)
			}
			got, err := egress.ParseProxy(data)
			if err != nil {
				if tc.says == "" || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), canary) {
					t.Errorf("error = %v, want one saying %q", err, tc.says)
				}
				return
			}
			if got.String() != tc.want {
				t.Errorf("proxy = %s, want %s", got, tc.want)
			}
		})
	}
}
