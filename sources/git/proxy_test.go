package git_test

import (
	"bufio"
	"context"
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
	"github.com/flotilla-io/flotilla/sources/git"
)

// forwarding is a proxy that leads to one server, whatever host it is asked for, and remembers which.
type forwarding struct {
	server *httptest.Server
	to     string

	mu    sync.Mutex
	hosts []string
}

func newForwarding(t *testing.T, to string) *forwarding {
	t.Helper()
	p := &forwarding{to: to}
	p.server = httptest.NewServer(p)
	t.Cleanup(p.server.Close)
	return p
}

func (p *forwarding) url() *url.URL {
	u, _ := url.Parse(p.server.URL)
	return u
}

// take returns the hosts that it was asked for since the last call, each once.
func (p *forwarding) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.hosts
	p.hosts = nil
	return out
}

func (p *forwarding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if len(p.hosts) == 0 || p.hosts[len(p.hosts)-1] != r.Host {
		p.hosts = append(p.hosts, r.Host)
	}
	p.mu.Unlock()
	to, err := net.Dial("tcp", p.to)
	if err != nil {
		http.Error(w, "unreachable", http.StatusBadGateway)
		return
	}
	defer to.Close()
	if r.Method != http.MethodConnect {
		_ = r.Write(to)
		resp, err := http.ReadResponse(bufio.NewReader(to), r)
		if err != nil {
			http.Error(w, "unreachable", http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		for key, values := range resp.Header {
			w.Header()[key] = values
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(to, rw)
		_ = to.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(conn, to)
}

// noNames is a resolver that knows one name, of a private address.
func noNames(_ context.Context, _, host string) ([]netip.Addr, error) {
	if host == "inner.example" {
		return []netip.Addr{netip.MustParseAddr("10.77.0.1")}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// TestProxies reads repositories through proxies, of a host that only those know.
func TestProxies(t *testing.T) {
	f := newFixture(t)
	f.commit("one", map[string]string{"a.yaml": "one\n"})
	served := httptest.NewServer(f.front())
	t.Cleanup(served.Close)
	host, _ := newSigner(t)
	client, identity := newSigner(t)
	server := newSSHServer(t, f.root, host, client.PublicKey())
	known := strings.Replace(string(server.knownHosts(host.PublicKey())), "["+strings.Replace(server.listener.Addr().String(), ":", "]:", 1), "git.example.com", 1)
	secret := map[string]string{"identity": string(identity), "known_hosts": known}
	web := newForwarding(t, strings.TrimPrefix(served.URL, "http://"))
	shell := newForwarding(t, server.listener.Addr().String())
	const private = "http://inner.example/app.git"
	for name, tc := range map[string]struct {
		url         string
		environment *forwarding
		owner       *forwarding
		secret      map[string]string
		want        []string // the hosts that the proxy was asked for
		err         error
	}{
		"the environment's":                     {url: "http://git.example.com/app.git", environment: web, want: []string{"git.example.com"}},
		"the owner's":                           {url: "http://git.example.com/app.git", owner: web, want: []string{"git.example.com"}},
		"the owner's comes first":               {url: "http://git.example.com/app.git", owner: web, environment: shell, want: []string{"git.example.com"}},
		"ssh by the owner's":                    {url: "ssh://git.example.com/app.git", owner: shell, secret: secret, want: []string{"git.example.com:22"}},
		"ssh does not go by the environment's":  {url: "ssh://git.example.com/app.git", environment: shell, secret: secret, err: egress.ErrNotAllowed},
		"a name that leads within":              {url: private, environment: web, err: egress.ErrNotAllowed},
		"a name that leads within, by owner's":  {url: private, owner: web, err: egress.ErrNotAllowed},
		"a private address":                     {url: "http://10.77.0.1/app.git", owner: web, err: egress.ErrNotAllowed},
		"ssh to a private address":              {url: "ssh://10.77.0.1/app.git", owner: shell, secret: secret, err: egress.ErrNotAllowed},
		"a host that the proxy does not reach":  {url: "http://git.example.com/app.git", owner: newForwarding(t, "127.0.0.1:1"), want: []string{"git.example.com"}, err: errAny},
		"TLS to a host that the proxy does not": {url: "https://git.example.com/app.git", owner: newForwarding(t, "127.0.0.1:1"), want: []string{"git.example.com:443"}, err: egress.ErrProxyRefuses},
	} {
		t.Run(name, func(t *testing.T) {
			opts := git.Options{Kept: git.NewKept(git.KeptOptions{}), Egress: egress.Dialer{Networks: loopback, LookupNetIP: noNames}}
			used := tc.environment
			if tc.environment != nil {
				opts.Egress.Proxies = func(*url.URL) (*url.URL, error) { return tc.environment.url(), nil }
			}
			if tc.owner != nil {
				opts.Proxy, used = tc.owner.url(), tc.owner
			}
			err := fetchMain(t.Context(), f.remote(tc.url, credentials(t, tc.url, tc.secret), opts))
			if errors.Is(tc.err, errAny) && err != nil {
				err = errAny
			}
			if !errors.Is(err, tc.err) {
				t.Errorf("error = %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, used.take()); diff != "" {
				t.Errorf("hosts that the proxy was asked for (-want +got):\n%s", diff)
			}
		})
	}
}

// errAny stands for any error.
var errAny = errors.New("any")

// TestRedirectsBehindAProxyAreJudged checks that a server behind a proxy leads to no address that it may not.
func TestRedirectsBehindAProxyAreJudged(t *testing.T) {
	inside := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.77.0.0/16")}
	for name, tc := range map[string]struct {
		to   string
		also []netip.Prefix
	}{
		"to metadata":                            {to: "http://169.254.169.254"},
		"to a private address":                   {to: "http://10.77.0.1"},
		"to a name that leads there":             {to: "http://inner.example"},
		"to where a repository itself might be":  {to: "http://10.77.0.1", also: inside},
		"to a name of where it might be":         {to: "http://inner.example", also: inside},
		"to this machine, where others might be": {to: "http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Host != "git.example.com" {
					t.Errorf("%s was asked for", r.Host)
				}
				http.Redirect(w, r, tc.to+r.URL.Path+"?"+r.URL.RawQuery, http.StatusFound)
			}))
			defer s.Close()
			p := newForwarding(t, strings.TrimPrefix(s.URL, "http://"))
			opts := git.Options{Egress: egress.Dialer{Networks: loopback, LookupNetIP: noNames, Proxies: func(*url.URL) (*url.URL, error) { return p.url(), nil }}}
			if tc.also != nil {
				opts.Egress.Networks = tc.also
			}
			f := &fixture{t: t}
			err := fetchMain(t.Context(), f.remote("http://git.example.com/app.git", git.Credentials{}, opts))
			if !errors.Is(err, git.ErrRedirect) {
				t.Errorf("error = %v, want ErrRedirect", err)
			}
			if got := fmt.Sprint(p.take()); got != "[git.example.com]" {
				t.Errorf("the proxy was asked for %s", got)
			}
		})
	}
}
