package bucket_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/s3server"
	"github.com/flotilla-io/flotilla/sources/bucket"
	"github.com/flotilla-io/flotilla/sources/s3"
)

// inClouds has a reconciler find all hosts of clouds at one server.
func inClouds(t *testing.T, handler http.HandlerFunc) bucket.Options {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return bucket.Options{
		Clouds: true, Trust: &tls.Config{RootCAs: pool, ServerName: "example.com", MinVersion: tls.VersionTLS12},
		Servers: s3.Options{Egress: egress.Dialer{
			Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			LookupNetIP: func(context.Context, string, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("203.0.114.7")}, nil
			},
			Machine: func() ([]netip.Addr, error) { return nil, nil },
			Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
			},
		}},
	}
}

func serviceAccount(t *testing.T) string {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{"type": "service_account", "client_email": "a@b", "private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestGoogle follows a bucket of Google with the key of a service account.
func TestGoogle(t *testing.T) {
	objects := s3server.New("fleet", "")
	objects.Put(map[string]string{"app/web.yaml": "kind: Deployment\n"})
	token := "token-1"
	b := newBench(t, inClouds(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Host == "oauth2.googleapis.com" && r.FormValue("assertion") != "":
			_, _ = w.Write([]byte(`{"access_token": "token-1", "expires_in": 3600}`))
		case r.Host == "storage.googleapis.com" && r.Header.Get("Authorization") == "Bearer "+token:
			objects.ServeHTTP(w, r)
		default:
			s3server.Refuse(w, http.StatusForbidden, "AccessDenied")
		}
	}))
	b.add(secret("google", "serviceaccount", serviceAccount(t)), secret("no-account", "serviceaccount", canary))
	b.create(func(s *sourcev1.BucketSpec) {
		s.Provider, s.Endpoint, s.Insecure, s.SecretRef = "gcp", "storage.googleapis.com", false, &meta.LocalObjectReference{Name: "google"}
	})
	if got := b.ready(); !strings.HasPrefix(got, "True Succeeded: stored artifact: revision 'sha256:") {
		t.Fatalf("it is %s", got)
	}
	token = "token-2"
	if got := b.ready(); got != "False AuthenticationFailed: list the objects of bucket fleet at storage.googleapis.com: access denied (HTTP 403): let the service account of the Secret list the bucket and read its objects (roles/storage.objectViewer)" {
		t.Errorf("without rights it is %s", got)
	}
	b.edit(func(s *sourcev1.BucketSpec) { s.Endpoint = "elsewhere.test" })
	if got := b.ready(); got != "False URLInvalid: unusable address: spec.endpoint of a bucket of Google is storage.googleapis.com, which gets the token" {
		t.Errorf("elsewhere it is %s", got)
	}
	b.edit(func(s *sourcev1.BucketSpec) { s.SecretRef.Name = "no-account" })
	if got := b.ready(); got != "False AuthenticationFailed: Secret shop/no-account of spec.secretRef: serviceaccount: unusable credentials: it has to be the JSON key of a service account, as gcloud iam service-accounts keys create writes it" {
		t.Errorf("without an account it is %s", got)
	}
}

// TestAzure follows a container of Azure with the key of the account.
func TestAzure(t *testing.T) {
	b := newBench(t, inClouds(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Host != "shop.blob.core.windows.net" || !strings.HasPrefix(r.Header.Get("Authorization"), "SharedKey shop:"):
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/fleet":
			_, _ = w.Write([]byte("<EnumerationResults><Blobs><Blob><Name>app/web.yaml</Name><Properties><Etag>0x1</Etag><Content-Length>3</Content-Length></Properties></Blob></Blobs></EnumerationResults>"))
		case r.URL.Path == "/fleet/app/web.yaml" && r.Header.Get("If-Match") == `"0x1"`:
			_, _ = w.Write([]byte("a: "))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	b.add(secret("azure", "accountKey", "a2V5"))
	b.create(func(s *sourcev1.BucketSpec) {
		s.Provider, s.Endpoint, s.Insecure, s.SecretRef = "azure", "https://shop.blob.core.windows.net", false, &meta.LocalObjectReference{Name: "azure"}
	})
	if got := b.ready(); !strings.HasPrefix(got, "True Succeeded: stored artifact: revision 'sha256:") {
		t.Fatalf("it is %s", got)
	}
	b.edit(func(s *sourcev1.BucketSpec) { s.Endpoint = "https://shop.blob.core.windows.net.evil.test" })
	if got := b.ready(); got != "False URLInvalid: unusable address: spec.endpoint of a container of Azure is https://ACCOUNT.blob.core.windows.net" {
		t.Errorf("elsewhere it is %s", got)
	}
	b.edit(func(s *sourcev1.BucketSpec) { s.SecretRef.Name = "keys" })
	if got := b.ready(); got != "False AuthenticationFailed: Secret shop/keys of spec.secretRef: unusable credentials: it needs accountKey, or sasKey, or tenantId with clientId and clientSecret" {
		t.Errorf("without a key it is %s", got)
	}
}

// TestAmazon: keys of Amazon are those of S3.
func TestAmazon(t *testing.T) {
	b := newBench(t, bucket.Options{})
	b.Put(map[string]string{"app/web.yaml": "kind: Deployment\n"})
	b.create(func(s *sourcev1.BucketSpec) { s.Provider = "aws" })
	if got := b.ready(); !strings.HasPrefix(got, "True Succeeded") {
		t.Errorf("it is %s", got)
	}
}
