package repository_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/repository"
	"github.com/flotilla-io/flotilla/sources/sigv4"
)

// cloud stands in front of the bench's Git server as Azure DevOps, with the server that gives out its tokens, and as CodeCommit.
type cloud struct {
	// good is the token that is taken now, and given out.
	good  string
	given int
	ca    string
}

func newCloud(t *testing.T, b *bench, clouds bool) *cloud {
	t.Helper()
	to, err := url.Parse(b.git.URL("app"))
	if err != nil {
		t.Fatal(err)
	}
	a := &cloud{good: "token-1"}
	front := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
		r.Out.URL.Path = strings.TrimPrefix(strings.TrimPrefix(r.In.URL.Path, "/acme/fleet/_git"), "/v1/repos")
	}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case r.Host == codeCommit && user == "AKIA1" && password == sigv4.GitPassword(sigv4.Keys{Secret: canary}, codeCommit, "/v1/repos/app.git", "eu-central-1", b.clock.Now()):
			front.ServeHTTP(w, r)
		case r.Host == "login.microsoftonline.com" && r.URL.Path == "/t-1/oauth2/v2.0/token" && r.FormValue("client_secret") == canary && r.FormValue("scope") == "499b84ac-1321-427f-aa17-267ca6975798/.default":
			a.given++
			fmt.Fprintf(w, `{"access_token": %q, "expires_in": 3600}`, a.good)
		case r.Host == "dev.azure.com" && r.Header.Get("Authorization") == "Bearer "+a.good:
			front.ServeHTTP(w, r)
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		DNSNames: []string{"dev.azure.com", "login.microsoftonline.com", codeCommit}, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	a.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	b.restart(repository.Options{Clouds: clouds, Jitter: func(d time.Duration) time.Duration { return d }, Git: git.Options{TempDir: t.TempDir(), Egress: egress.Dialer{
		Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		LookupNetIP: func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("203.0.114.7")}, nil
		},
		Machine: func() ([]netip.Addr, error) { return nil, nil },
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	}}})
	return a
}

// TestAzureDevOps reads a repository with tokens for an application of Azure: one for as long as it counts, and another once the
// server takes it no more.
func TestAzureDevOps(t *testing.T) {
	b := newBench(t, repository.Options{})
	a := newCloud(t, b, true)
	head := b.commit("one", map[string]string{"app.yaml": "a: 1\n"})
	b.secret("azure", map[string]string{"tenantId": "t-1", "clientId": "c-1", "clientSecret": canary, "ca.crt": a.ca})
	b.create(func(o *sourcev1.GitRepository) {
		o.Spec.URL, o.Spec.Provider = "https://dev.azure.com/acme/fleet/_git/app.git", sourcev1.GitProviderAzure
		o.Spec.SecretRef = &meta.LocalObjectReference{Name: "azure"}
	})
	for range 2 {
		b.mustReconcile()
	}
	if got := b.object().Status.Artifact; got == nil || got.Revision != "main@sha1:"+head || a.given != 1 {
		t.Fatalf("artifact = %v after %d tokens: %v", got, a.given, b.composed())
	}
	a.good = "token-2" // the first was revoked
	if result, err, _, _ := b.reconcile(); err != nil || !slices.Contains(conditions(b.object()), "Ready=False AuthenticationFailed") {
		t.Fatalf("%v, %v: %v", result, err, conditions(b.object()))
	}
	b.mustReconcile()
	if a.given != 2 {
		t.Errorf("%d tokens were given out, want 2", a.given)
	}
}

// codeCommit is a server of Amazon's.
const codeCommit = "git-codecommit.eu-central-1.amazonaws.com"

// TestCodeCommit reads a repository with passwords that keys sign, each for a quarter of an hour.
func TestCodeCommit(t *testing.T) {
	b := newBench(t, repository.Options{})
	a := newCloud(t, b, true)
	head := b.commit("one", map[string]string{"app.yaml": "a: 1\n"})
	b.secret("amazon", map[string]string{"accesskey": "AKIA1", "secretkey": canary, "ca.crt": a.ca})
	b.create(func(o *sourcev1.GitRepository) {
		o.Spec.URL, o.Spec.Provider = "https://"+codeCommit+"/v1/repos/app.git/", sourcev1.GitProviderAWS
		o.Spec.SecretRef = &meta.LocalObjectReference{Name: "amazon"}
	})
	for range 2 {
		b.mustReconcile()
		if got := b.object().Status.Artifact; got == nil || got.Revision != "main@sha1:"+head {
			t.Fatalf("artifact = %v: %v", got, b.composed())
		}
		b.clock.SetTime(b.clock.Now().Add(10 * time.Minute)) // after which another is signed
		head = b.commit("two", map[string]string{"app.yaml": "a: 2\n"})
	}
}

// TestCloudsRefused: no login is given that would go elsewhere, or for something else.
func TestCloudsRefused(t *testing.T) {
	application := map[string]string{"tenantId": "t-1", "clientId": "c-1", "clientSecret": canary}
	for name, tc := range map[string]struct {
		without      bool // the tag
		url          string
		secret       map[string]string
		reason, says string
	}{
		"in another build":               {without: true, secret: application, reason: "UnsupportedField", says: "spec.provider azure takes a flotillad that was built with -tags clouds: build it with that, or remove it, and name a Secret with username, and a personal access token as password, in spec.secretRef"},
		"by the identity of the machine": {reason: "UnsupportedField", says: "spec.provider azure is served with credentials alone, as no identity of a machine is used: name a Secret with tenantId, clientId and clientSecret in spec.secretRef"},
		"for another server":             {url: "https://git.evil.test/app.git", secret: application, reason: "URLInvalid", says: "Secret shop/azure: unusable address: git.evil.test is not dev.azure.com, which alone gets a login of Azure"},
		"without TLS":                    {url: "http://dev.azure.com/acme/fleet/_git/app", secret: application, reason: "URLInvalid", says: "spec.provider azure needs an https URL, as a login of the cloud is sent there"},
		"with a password, too":           {secret: map[string]string{"tenantId": "t-1", "clientId": "c-1", "clientSecret": canary, "username": "u", "password": canary}, reason: "AuthenticationFailed", says: "Secret shop/azure: unusable credentials: spec.provider azure takes credentials of the cloud, and neither username/password, bearerToken nor the keys of a GitHub App"},
		"with a password alone":          {secret: map[string]string{"username": "u", "password": canary}, reason: "AuthenticationFailed", says: "Secret shop/azure: unusable credentials: spec.provider azure takes credentials of the cloud, and neither username/password, bearerToken nor the keys of a GitHub App"},
		"without the secret":             {secret: map[string]string{"tenantId": "t-1", "clientId": "c-1"}, reason: "AuthenticationFailed", says: "Secret shop/azure: unusable credentials: it takes tenantId, clientId and clientSecret"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, repository.Options{})
			a := newCloud(t, b, !tc.without)
			b.create(func(o *sourcev1.GitRepository) {
				o.Spec.URL, o.Spec.Provider = "https://dev.azure.com/acme/fleet/_git/app.git", sourcev1.GitProviderAzure
				if tc.url != "" {
					o.Spec.URL = tc.url
				}
				if tc.secret != nil {
					b.secret("azure", tc.secret)
					o.Spec.SecretRef = &meta.LocalObjectReference{Name: "azure"}
				}
			})
			if _, err, _, _ := b.reconcile(); err != nil {
				t.Fatal(err)
			}
			if got := b.composed(); got.Reason != tc.reason || got.Says != tc.says {
				t.Errorf("%s: %s\nwant %s: %s", got.Reason, got.Says, tc.reason, tc.says)
			}
			if a.given != 0 {
				t.Errorf("%d tokens were given out", a.given)
			}
		})
	}
}
