package repository_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"golang.org/x/crypto/ssh"

	"github.com/flotilla-io/flotilla/sources/repository"
)

// TestGitHubApp reads a repository with the tokens of a GitHub App: one for as long as it counts, and another once the server
// takes it no more.
func TestGitHubApp(t *testing.T) {
	b := newBench(t, repository.Options{})
	head := b.commit("one", map[string]string{"app.yaml": "a: 1\n"})
	to, err := url.Parse(b.git.URL("app"))
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		made++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"token": "ghs_%d", "expires_at": %q}`, made, b.clock.Now().Add(time.Hour).Format(time.RFC3339))
	}))
	t.Cleanup(api.Close)
	good := "ghs_1"
	front := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "x-access-token" || password != good {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		front.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	app := map[string]string{
		"githubAppID": "1", "githubAppInstallationID": "77", "githubAppBaseURL": api.URL,
		"githubAppPrivateKey": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
		"ca.crt":              string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})),
	}
	b.secret("app", app)
	b.create(func(o *sourcev1.GitRepository) {
		o.Spec.URL, o.Spec.Provider = server.URL+"/app.git", sourcev1.GitProviderGitHub
		o.Spec.SecretRef = &meta.LocalObjectReference{Name: "app"}
	})
	for range 2 {
		b.mustReconcile()
	}
	if got := b.object().Status.Artifact; got == nil || got.Revision != "main@sha1:"+head || made != 1 {
		t.Fatalf("artifact = %v after %d tokens, want that of %s after one", got, made, head)
	}
	good = "ghs_2" // the first was revoked
	if result, err, _, _ := b.reconcile(); err != nil || !slices.Contains(conditions(b.object()), "Ready=False AuthenticationFailed") {
		t.Fatalf("%v, %v: %v", result, err, conditions(b.object()))
	}
	b.mustReconcile()
	if made != 2 {
		t.Errorf("%d tokens were made, want 2", made)
	}
}

// TestProvidersThatLackSomething checks what is said of providers and Secrets that do not go together.
func TestProvidersThatLackSomething(t *testing.T) {
	for name, tc := range map[string]struct {
		provider, account string
		secret            map[string]string
		reason, says      string
	}{
		"azure":                        {provider: "azure", reason: "UnsupportedField", says: "spec.provider azure takes a flotillad that was built with -tags clouds"},
		"aws":                          {provider: "aws", reason: "UnsupportedField", says: "spec.provider aws takes a flotillad that was built with -tags clouds"},
		"an account":                   {account: "robot", reason: "UnsupportedField", says: "spec.serviceAccountName is not supported yet"},
		"github without a Secret":      {provider: "github", reason: "AuthenticationFailed", says: "name a Secret with them in spec.secretRef"},
		"github with a password":       {provider: "github", secret: map[string]string{"username": "u", "password": canary}, reason: "AuthenticationFailed", says: "needs the keys of a GitHub App"},
		"github with a username":       {provider: "github", secret: map[string]string{"username": "u"}, reason: "AuthenticationFailed", says: "Secret shop/app: unusable credentials: spec.provider github needs the keys of a GitHub App"},
		"an App without its ID":        {provider: "github", secret: map[string]string{"githubAppPrivateKey": canary}, reason: "AuthenticationFailed", says: "Secret shop/app: unusable GitHub App: keys githubAppID and githubAppPrivateKey go together"},
		"an App without its key":       {provider: "github", secret: map[string]string{"githubAppID": "1"}, reason: "AuthenticationFailed", says: "go together"},
		"an App that is not asked for": {secret: map[string]string{"githubAppID": "1", "githubAppInstallationID": "1", "githubAppPrivateKey": rsaKey(t)}, reason: "AuthenticationFailed", says: "the keys of a GitHub App need spec.provider github"},
		"an App beside a password": {
			provider: "github", secret: map[string]string{"githubAppID": "1", "githubAppInstallationID": "1", "githubAppPrivateKey": rsaKey(t), "username": "u", "password": canary},
			reason: "AuthenticationFailed", says: "exclude username/password",
		},
		"an App whose API is where no source may be": {
			provider: "github", secret: map[string]string{"githubAppID": "1", "githubAppInstallationID": "1", "githubAppPrivateKey": rsaKey(t), "githubAppBaseURL": "https://169.254.169.254"},
			reason: "AddressNotAllowed", says: "169.254.169.254 leads to a link-local",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, repository.Options{})
			b.create(func(o *sourcev1.GitRepository) {
				o.Spec.Provider, o.Spec.ServiceAccountName = tc.provider, tc.account
				if tc.secret != nil {
					b.secret("app", tc.secret)
					o.Spec.SecretRef = &meta.LocalObjectReference{Name: "app"}
				}
			})
			if _, err, _, _ := b.reconcile(); err != nil {
				t.Fatal(err)
			}
			said := false
			for _, c := range b.object().Status.Conditions {
				said = said || c.Type == "Ready" && c.Reason == tc.reason && strings.Contains(c.Message, tc.says)
				if strings.Contains(c.Message, canary) {
					t.Errorf("a secret shows in %s", c.Message)
				}
			}
			if !said {
				t.Errorf("conditions = %+v, want %s saying %q", b.object().Status.Conditions, tc.reason, tc.says)
			}
		})
	}
}

// TestTheProxyIsNamed: what is wrong with the proxy of a Secret names the Secret, and says that it is about the proxy.
func TestTheProxyIsNamed(t *testing.T) {
	const shell = "ssh://git@git.example.com/app.git"
	for name, tc := range map[string]struct{ url, proxy, reason, says string }{
		"nothing is there":             {proxy: "http://127.0.0.1:1", reason: "GitOperationFailed", says: "the proxy of the Secret shop/proxy: connection refused"},
		"it is where no source may be": {proxy: "http://10.9.9.9:3128", reason: "AddressNotAllowed", says: "the proxy of the Secret shop/proxy: address not allowed: 10.9.9.9 leads to a private address"},
		"nothing is there, for SSH":    {url: shell, proxy: "http://127.0.0.1:1", reason: "GitOperationFailed", says: "the proxy of the Secret shop/proxy: connection refused"},
		"where no source may, for SSH": {url: shell, proxy: "socks5://10.9.9.9:1080", reason: "AddressNotAllowed", says: "the proxy of the Secret shop/proxy: address not allowed: 10.9.9.9 leads to a private address"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, repository.Options{})
			b.secret("proxy", map[string]string{"address": tc.proxy})
			b.create(func(o *sourcev1.GitRepository) {
				o.Spec.ProxySecretRef = &meta.LocalObjectReference{Name: "proxy"}
				if tc.url != "" {
					o.Spec.URL, o.Spec.SecretRef = tc.url, &meta.LocalObjectReference{Name: "key"}
					b.secret("key", map[string]string{"identity": sshKey(t), "known_hosts": "git.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl\n"})
				}
			})
			_, _, _, _ = b.reconcile()
			got := b.composed()
			if got.Reason != tc.reason || !strings.Contains(got.Says, tc.says) {
				t.Errorf("%s: %s\nwant %s: %s", got.Reason, got.Says, tc.reason, tc.says)
			}
		})
	}
}

// sshKey returns a private key in PEM.
func sshKey(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}

// rsaKey returns a private key in PEM.
func rsaKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}
