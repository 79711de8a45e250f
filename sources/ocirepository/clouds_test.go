package ocirepository_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/ociserver"
	"github.com/flotilla-io/flotilla/sources/oci"
	"github.com/flotilla-io/flotilla/sources/ocirepository"
)

const (
	ecr    = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
	ecrAPI = "api.ecr.eu-central-1.amazonaws.com"
	acr    = "shop.azurecr.io"
	garHub = "europe-docker.pkg.dev"
)

// clouds are servers of all clouds at one address: a registry for who has this login or token, and those that give such out.
type clouds struct {
	*ociserver.Server
	bench *bench
	// ca is their authority, in PEM.
	ca []byte
	// password is what registries take now, and given how many logins were given out.
	password atomic.Value
	given    atomic.Int32
}

func newClouds(t *testing.T, built bool) *clouds {
	t.Helper()
	c := &clouds{Server: ociserver.New()}
	c.password.Store("pw")
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		DNSNames: []string{ecr, ecrAPI, acr, "login.microsoftonline.com", garHub, "oauth2.googleapis.com"}, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	raw := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	c.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	server := httptest.NewUnstartedServer(http.HandlerFunc(c.serve))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	c.bench = newBench(t, ocirepository.Options{Clouds: built, Registries: oci.Options{Egress: egress.Dialer{
		Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		LookupNetIP: func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("203.0.114.7")}, nil
		},
		Machine: func() ([]netip.Addr, error) { return nil, nil },
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	}}})
	c.bench.registry = c.Server
	c.bench.add(
		c.secret("ca", "ca.crt", string(c.ca)), c.secret("amazon", "accesskey", "AKIA1", "secretkey", canary), c.secret("google", "serviceaccount", serviceAccount(t)),
		c.secret("azure", "tenantId", "t-1", "clientId", "c-1", "clientSecret", canary), c.secret("half", "accesskey", canary),
		c.secret("login", ".dockerconfigjson", `{"auths": {"`+ecr+`": {"username": "AWS", "password": "pw"}}}`, "accesskey", "AKIA1"),
	)
	return c
}

func (c *clouds) secret(name string, pairs ...string) *corev1.Secret {
	data := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i]] = []byte(pairs[i+1])
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}, Data: data}
}

// serve gives a login for each question that is asked as it has to be, and lets in who has the latest.
func (c *clouds) serve(w http.ResponseWriter, r *http.Request) {
	_, password, _ := r.BasicAuth()
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	want := c.password.Load().(string)
	give := func(format string) {
		c.given.Add(1)
		_, _ = fmt.Fprintf(w, format, want)
	}
	switch {
	case r.Host == ecrAPI && strings.Contains(r.Header.Get("Authorization"), "Credential=AKIA1/20260801/eu-central-1/ecr/aws4_request"):
		c.given.Add(1)
		login := "QVdTOnB3" // AWS:pw
		if want == "pw2" {
			login = "QVdTOnB3Mg=="
		}
		_, _ = fmt.Fprintf(w, `{"authorizationData": [{"authorizationToken": %q, "expiresAt": %d}]}`, login, start.Add(12*time.Hour).Unix())
	case r.Host == "oauth2.googleapis.com" && r.FormValue("assertion") != "":
		give(`{"access_token": %q, "expires_in": 3600}`)
	case r.Host == "login.microsoftonline.com" && r.FormValue("client_secret") == canary:
		_, _ = w.Write([]byte(`{"access_token": "aad", "expires_in": 3600}`))
	case r.Host == acr && r.URL.Path == "/oauth2/exchange" && r.FormValue("access_token") == "aad":
		give(`{"refresh_token": %q}`)
	case r.Host == acr && r.URL.Path == "/oauth2/token" && r.FormValue("refresh_token") == want && r.FormValue("scope") == "repository:app:pull":
		_, _ = fmt.Fprintf(w, `{"access_token": %q}`, want)
	case strings.HasPrefix(r.URL.Path, "/v2/") && (password == want || r.Host == acr && bearer == want):
		c.ServeHTTP(w, r)
	case strings.HasPrefix(r.URL.Path, "/v2/") && r.Host == acr:
		w.Header().Set("WWW-Authenticate", `Bearer realm="https://`+acr+`/oauth2/token",service="`+acr+`",scope="repository:app:pull"`)
		w.WriteHeader(http.StatusUnauthorized)
	case strings.HasPrefix(r.URL.Path, "/v2/"):
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
	default:
		w.WriteHeader(http.StatusForbidden)
	}
}

// TestClouds reads the registry of each cloud with credentials of a Secret: one login for as long as it counts, and another once the
// registry takes it no more.
func TestClouds(t *testing.T) {
	for provider, tc := range map[string]struct{ host, secret string }{
		"aws": {ecr, "amazon"}, "gcp": {garHub, "google"}, "azure": {acr, "azure"},
	} {
		t.Run(provider, func(t *testing.T) {
			c := newClouds(t, true)
			b := c.bench
			b.push("latest", map[string]string{"app.yaml": "one"})
			b.create(func(s *sourcev1.OCIRepositorySpec) {
				s.URL, s.Insecure, s.Provider = "oci://"+tc.host+"/app", false, provider
				s.SecretRef, s.CertSecretRef = &meta.LocalObjectReference{Name: tc.secret}, &meta.LocalObjectReference{Name: "ca"}
			})
			for range 2 {
				b.reconcile()
			}
			if got := b.ready(); !strings.HasPrefix(got, "True Succeeded") || c.given.Load() != 1 {
				t.Fatalf("after %d logins it is %s", c.given.Load(), got)
			}
			c.password.Store("pw2") // the first was revoked
			if b.reconcile(); !strings.HasPrefix(b.ready(), "False AuthenticationFailed") {
				t.Errorf("with a login that is refused it is %s", b.ready())
			}
			if b.reconcile(); !strings.HasPrefix(b.ready(), "True Succeeded") || c.given.Load() != 2 {
				t.Errorf("after %d logins it is %s", c.given.Load(), b.ready())
			}
			c.Requests() // those so far
			b.reconcile()
			if got := c.Requests(); len(got) != 1 || c.given.Load() != 2 {
				t.Errorf("a look at what is the same asked the registry for %v, and there were %d logins", got, c.given.Load())
			}
		})
	}
}

// TestCloudsRefused: nothing is asked of a cloud that it takes another build for, that nobody has credentials of, or whose registry
// it is not. A login in the Secret counts before all that.
func TestCloudsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		without bool // the tag
		spec    func(*sourcev1.OCIRepositorySpec)
		want    string
		stalls  bool // as nothing but another spec helps
	}{
		"in another build": {without: true, want: "False UnsupportedField: the Secret shop/amazon of spec.secretRef has credentials of spec.provider aws, which take a flotillad that was built with -tags clouds: build it with that, or put a login for the registry into the Secret"},
		"a login, in another build": {without: true, spec: func(s *sourcev1.OCIRepositorySpec) { s.SecretRef.Name = "login" },
			want: "True Succeeded: stored artifact for digest"},
		"by the identity of the machine": {spec: func(s *sourcev1.OCIRepositorySpec) { s.SecretRef = nil },
			want: "False UnsupportedField: spec.provider aws is served with credentials alone, as no identity of a machine is used: name a Secret with accesskey and secretkey, or with a login for the registry, in spec.secretRef", stalls: true},
		"without TLS": {spec: func(s *sourcev1.OCIRepositorySpec) { s.Insecure = true },
			want: "False UnsupportedField: spec.insecure would have the login of spec.provider aws sent without TLS: remove it", stalls: true},
		"for another registry": {spec: func(s *sourcev1.OCIRepositorySpec) { s.URL = "oci://registry.evil.test/app" },
			want: "False URLInvalid: Secret shop/amazon of spec.secretRef: unusable address: registry.evil.test is no ACCOUNT.dkr.ecr.REGION.amazonaws.com, which alone gets a login of AWS", stalls: true},
		"half of the credentials": {spec: func(s *sourcev1.OCIRepositorySpec) { s.SecretRef.Name = "half" },
			want: "False AuthenticationFailed: Secret shop/half of spec.secretRef: unusable credentials: it takes accesskey and secretkey"},
		"credentials of another cloud": {spec: func(s *sourcev1.OCIRepositorySpec) { s.SecretRef.Name = "azure" },
			want: "False AuthenticationFailed: Secret shop/azure of spec.secretRef: unusable credentials: it has no key .dockerconfigjson"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClouds(t, !tc.without)
			b := c.bench
			b.push("latest", map[string]string{"app.yaml": "one"})
			b.create(func(s *sourcev1.OCIRepositorySpec) {
				s.URL, s.Insecure, s.Provider = "oci://"+ecr+"/app", false, "aws"
				s.SecretRef, s.CertSecretRef = &meta.LocalObjectReference{Name: "amazon"}, &meta.LocalObjectReference{Name: "ca"}
				if tc.spec != nil {
					tc.spec(s)
				}
			})
			if again := b.reconcile().RequeueAfter; (again == 0) != tc.stalls {
				t.Errorf("it is looked at again after %s", again)
			}
			if got := b.ready(); !strings.HasPrefix(got, tc.want) || strings.HasPrefix(tc.want, "False Unsupported") && got != tc.want {
				t.Errorf("ready (-want +got):\n%s", cmp.Diff(tc.want, got))
			}
			if got := c.given.Load(); got != 0 {
				t.Errorf("%d logins were given out", got)
			}
		})
	}
}

// serviceAccount returns the key of one of Google's.
func serviceAccount(t *testing.T) string {
	t.Helper()
	private := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	der := must[[]byte](t)(x509.MarshalPKCS8PrivateKey(private))
	return string(must[[]byte](t)(json.Marshal(map[string]string{
		"type": "service_account", "client_email": "a@b", "private_key_id": canary, "private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})))
}
