package forge_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/forge"
)

// request is a request exactly as the forge received it.
type request struct {
	Method, Host, Target string
	Header               map[string]string // without those that the transport adds
	Body                 string
}

// contract is a fake forge that records its requests. It may stand in for servers
// on the internet: then it has a certificate for their names, and connections to
// them lead to it.
type contract struct {
	server *httptest.Server
	ca     []byte // nil if it stands in for no server on the internet
	mu     sync.Mutex
	got    []request
	// code and after are the status code and the Retry-After header of responses;
	// with code 0 there is no response.
	code  int
	after string
	over  chan struct{}
}

func newContract(t *testing.T, names ...string) *contract {
	t.Helper()
	f := &contract{code: http.StatusCreated, over: make(chan struct{})}
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got := request{Method: r.Method, Host: r.Host, Target: r.RequestURI, Header: map[string]string{}, Body: string(text)}
		for key, values := range r.Header {
			if key != "Accept-Encoding" && key != "Content-Length" {
				got.Header[key] = strings.Join(values, ", ")
			}
		}
		f.mu.Lock()
		f.got = append(f.got, got)
		f.mu.Unlock()
		if f.code == 0 {
			<-f.over
			return
		}
		if f.after != "" {
			w.Header().Set("Retry-After", f.after)
		}
		w.WriteHeader(f.code)
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(func() {
		close(f.over)
		f.server.Close()
	})
	if len(names) == 0 {
		f.server.Start()
		return f
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: names, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	f.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	f.server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	f.server.StartTLS()
	return f
}

// reach returns a Dialer that resolves every name to a public address and
// connects to the fake forge.
func (f *contract) reach() egress.Dialer {
	return egress.Dialer{
		LookupNetIP: func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("1.1.1.1")}, nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, f.server.Listener.Addr().String())
		},
	}
}

func (f *contract) poster(t *testing.T, p forge.Provider, timeout time.Duration) forge.Poster {
	t.Helper()
	opts := forge.Options{Egress: reach, Timeout: timeout}
	if f.ca != nil {
		p.Certificates, opts.Egress = map[string][]byte{"ca.crt": f.ca}, f.reach()
	}
	to, err := forge.New(p, opts)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// requests returns the requests since its last call.
func (f *contract) requests() []request {
	f.mu.Lock()
	defer f.mu.Unlock()
	got := f.got
	f.got = nil
	return got
}

// asked returns the expected headers of a request with an Authorization header,
// and more as pairs of key and value.
func asked(authorization string, more ...string) map[string]string {
	header := map[string]string{"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "flotilla", "Authorization": authorization}
	for i := 0; i < len(more); i += 2 {
		header[more[i]] = more[i+1]
	}
	return header
}

// paths are the repository's paths by Provider type.
var paths = map[string]string{
	"github": "/org/repo", "gitlab": "/org/repo", "gitea": "/org/repo", "bitbucketserver": "/scm/org/repo.git", "azuredevops": "/org/project/_git/repo",
}

// posting is a status, where it is posted, and the expected request.
type posting struct {
	address string
	secret  map[string]string // nil means the token canary
	status  forge.Status
	want    request
}

func (p posting) try(t *testing.T, kind string, f *contract) {
	t.Helper()
	secret := map[string][]byte{}
	for key, value := range p.secret {
		secret[key] = []byte(value)
	}
	if p.secret == nil {
		secret["token"] = []byte(canary + "\n")
	}
	if err := f.poster(t, forge.Provider{Type: kind, Address: p.address, Secret: secret}, time.Minute).Post(t.Context(), p.status); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]request{p.want}, f.requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestAnswersOfForges checks that a response leads to the same error with every
// kind of forge.
func TestAnswersOfForges(t *testing.T) {
	const mayWrite = "access denied (HTTP %s): the token must be valid, and needs the right to write commit statuses"
	cases := map[string]struct {
		code        int
		after, want string
	}{
		"a wrong token":              {code: 401, want: strings.Replace(mayWrite, "%s", "401 Unauthorized", 1)},
		"a token that may not write": {code: 403, want: strings.Replace(mayWrite, "%s", "403 Forbidden", 1)},
		"a repository that is gone":  {code: 404, want: "repository or commit not found (HTTP 404 Not Found): check the provider's address, and what the token may see"},
		"two at the same time":       {code: 409, want: "the forge answered HTTP 409 Conflict"},
		"a status that is not taken": {code: 422, want: "status refused (HTTP 422 Unprocessable Entity): WHY"},
		"one that is malformed":      {code: 400, want: "status refused (HTTP 400 Bad Request): WHY"},
		"too many requests":          {code: 429, after: "30", want: "rate limit reached, try again in 30s"},
		"one that is being mended":   {code: 503, after: "60", want: "rate limit reached, try again in 1m0s"},
		"one that is out of order":   {code: 500, want: "the forge answered HTTP 500 Internal Server Error"},
		"one that never answers":     {code: 0, want: "context deadline exceeded"},
	}
	const often = "a commit takes so many statuses of a context and no more, and the token may not set those of others"
	const link = "Bitbucket does not take every link: check where statuses lead (serve --status-url)"
	why := map[string]string{"github": often, "gitlab": often, "gitea": often, "azuredevops": often, "bitbucket": link, "bitbucketserver": link}
	for name, tc := range cases {
		for kind := range why {
			t.Run(name+" at "+kind, func(t *testing.T) {
				names, timeout := []string(nil), time.Minute
				if kind == "bitbucket" {
					names = []string{"api.bitbucket.org"}
				}
				if tc.code == 0 {
					timeout = 200 * time.Millisecond
				}
				f := newContract(t, names...)
				f.code, f.after = tc.code, tc.after
				address := f.server.URL + paths[kind]
				if kind == "bitbucket" {
					address = "https://bitbucket.org/org/repo"
				}
				_, at, _ := strings.Cut(strings.TrimSuffix(address, ".git"), "://")
				err := f.poster(t, forge.Provider{Type: kind, Address: address, Secret: map[string][]byte{"token": []byte(canary)}}, timeout).
					Post(t.Context(), forge.Status{Commit: commit, Context: "x", State: forge.Success})
				want := "post status to " + at + ": " + strings.Replace(tc.want, "WHY", why[kind], 1)
				if err == nil || err.Error() != want {
					t.Errorf("error = %v\nwant %s", err, want)
				}
				if n := len(f.requests()); n != 1 && tc.code != 0 {
					t.Errorf("%d requests, want 1", n)
				}
			})
		}
	}
}
