package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/notary"
	"github.com/flotilla-io/flotilla/internal/ociserver"
)

// signedByNotation follows a registry over TLS, and takes only what is signed as the policy of a Secret says.
const signedByNotation = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: signed, namespace: %[1]s}
spec:
  url: oci://%[2]s/fleet
  interval: 1h
  ref: {tag: production}
  certSecretRef: {name: registry}
  verify: {provider: notation, secretRef: {name: trust}}
`

// TestSecretsThatFluxMakes follows sources with the Secrets that the real command line of Flux makes: certificates, trust
// policies and GitHub Apps.
func TestSecretsThatFluxMakes(t *testing.T) {
	f := flux{t: t, binary: built(t, fluxProgram), namespace: fleet.NameOf(t), cache: t.TempDir()}
	the.Apply(t, fmt.Sprintf(inRegistry, f.namespace))
	t.Cleanup(func() { the.unfollow(t, f.namespace) })
	file := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		if err := write(path, content); err != nil {
			t.Fatal(err)
		}
		return path
	}

	registry := ociserver.NewWithReferrers()
	server := httptest.NewTLSServer(registry)
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	digest, err := registry.Push(t.Context(), "fleet", "production", map[string]string{"app/web.yaml": fmt.Sprintf(byHandApp, f.namespace, "nginx:1.29")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.check([]fluxStep{
		{args: "create secret tls registry -n NAMESPACE --ca-crt-file=" + file("ca.crt", certificateOf(server)), want: []string{`tls secret 'registry' created`}},
		{args: "create source oci plain -n NAMESPACE --tag=production --interval=1h --cert-ref=registry --url=oci://" + host + "/fleet",
			want: []string{`fetched revision: production@` + regexp.QuoteMeta(digest)}},
	})

	policy, root := signedBy(t, registry, server, digest)
	f.check([]fluxStep{
		{args: "create secret notation trust -n NAMESPACE --trust-policy-file=" + file("trustpolicy.json", policy) + " --ca-cert-file=" + file("acme.crt", root),
			want: []string{`notation configuration secret 'trust' created`}},
	})
	the.Apply(t, fmt.Sprintf(signedByNotation, f.namespace, host))
	the.Kubectl(t, "", "wait", "ocirepository/signed", "-n", f.namespace, "--for=condition=SourceVerified", "--timeout=60s")
	f.check([]fluxStep{{args: "get sources oci signed -n NAMESPACE", want: []string{`^signed\s+production@\S+\s+False\s+True\s+stored artifact`}}})

	repo := the.repository(t)
	repo.write("app/web.yaml", fmt.Sprintf(byHandApp, f.namespace, "nginx:1.29"))
	commit := repo.push("first")
	api, front := asGitHub(t, repo.url)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	private := file("app.pem", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	f.check([]fluxStep{
		{args: "create secret githubapp app -n NAMESPACE --app-id=1 --app-installation-id=77 --app-base-url=" + api.URL + " --app-private-key=" + private,
			want: []string{`githubapp secret 'app' created`}},
	})
	the.Kubectl(t, "", "patch", "secret", "app", "-n", f.namespace, "--type=merge", "-p", fmt.Sprintf(`{"stringData": {"ca.crt": %q}}`, certificateOf(api)))
	f.check([]fluxStep{
		{args: "create source git app -n NAMESPACE --provider=github --secret-ref=app --branch=main --interval=1h --url=" + front, want: []string{`fetched revision: main@sha1:` + commit}},
	})
}

// certificateOf returns the certificate of a server, as files have it.
func certificateOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// signedBy signs an artifact of the repository fleet with Notation. It returns a policy that trusts the signer, and the
// certificate of who vouches for him.
func signedBy(t *testing.T, registry *ociserver.Server, server *httptest.Server, digest string) (policy, root []byte) {
	t.Helper()
	authority, err := notary.NewAuthority("acme")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := authority.Signer("ann", notary.Issue{})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.Client().Head(server.URL + "/v2/fleet/manifests/" + digest)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	envelope, err := signer.Sign(t.Context(), notary.Artifact{MediaType: ociserver.Manifest, Digest: digest, Size: resp.ContentLength}, notary.JWS, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := registry.PushEnvelopes(t.Context(), "fleet", digest, ociserver.Envelope{MediaType: notary.JWS, Content: envelope}); err != nil {
		t.Fatal(err)
	}
	return notary.Policy("strict", server.Listener.Addr().String()+"/fleet", notary.Named("ann", "acme")), authority.Root()
}

// asGitHub serves a repository to those who have a token of a GitHub App, which the API gives.
func asGitHub(t *testing.T, repository string) (api *httptest.Server, front string) {
	t.Helper()
	to, err := url.Parse(repository)
	if err != nil {
		t.Fatal(err)
	}
	const token = "ghs_e2e"
	api = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/app/installations/77/access_tokens" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"token": %q, "expires_at": %q}`, token, time.Now().Add(time.Hour).Format(time.RFC3339))
	}))
	t.Cleanup(api.Close)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "x-access-token" || password != token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return api, server.URL + to.Path
}
