package oci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/oci"
)

// canary is the secret that must never show.
const canary = "CANARY-7b1e"

// reach allows connections to the servers of these tests.
var reach = egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// fixture is a registry that may be made to misbehave.
type fixture struct {
	t      *testing.T
	server *httptest.Server
	// asked are the requests, such as "HEAD /v2/app/manifests/latest".
	asked []string
	// before answers in place of the registry if it returns true.
	before func(w http.ResponseWriter, r *http.Request) bool
	real   http.Handler
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := unstarted(t)
	f.start()
	return f
}

func (f *fixture) start() {
	f.server = httptest.NewServer(f)
	f.t.Cleanup(f.server.Close)
}

func unstarted(t *testing.T) *fixture {
	t.Helper()
	return &fixture{t: t, real: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
}

func (f *fixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.asked = append(f.asked, r.Method+" "+r.URL.RequestURI())
	if f.before != nil && f.before(w, r) {
		return
	}
	f.real.ServeHTTP(w, r)
}

// host is that of the registry, with its port.
func (f *fixture) host() string { return f.server.Listener.Addr().String() }

func (f *fixture) url() string { return "oci://" + f.host() + "/app" }

// put sends something to the registry itself, and returns its digest.
func (f *fixture) put(method, path, contentType string, content []byte) string {
	f.t.Helper()
	req := httptest.NewRequestWithContext(f.t.Context(), method, path, bytes.NewReader(content))
	req.Header.Set("Content-Type", contentType)
	answer := httptest.NewRecorder()
	f.real.ServeHTTP(answer, req)
	if answer.Code != http.StatusCreated {
		f.t.Fatalf("%s %s: %d %s", method, path, answer.Code, answer.Body)
	}
	return sum(content)
}

func sum(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

func (f *fixture) blob(content []byte) string {
	f.t.Helper()
	return f.put(http.MethodPost, "/v2/app/blobs/uploads/?digest="+sum(content), "application/octet-stream", content)
}

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
	fluxLayer    = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// push pushes an artifact with layers of Flux's type, and returns the digest of its manifest.
func (f *fixture) push(tag string, layers ...[]byte) string {
	f.t.Helper()
	var descriptors []map[string]any
	for _, layer := range layers {
		descriptors = append(descriptors, map[string]any{"mediaType": fluxLayer, "digest": f.blob(layer), "size": len(layer)})
	}
	return f.manifest(tag, manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "layers": descriptors,
		"config":      map[string]any{"mediaType": "application/vnd.cncf.flux.config.v1+json", "digest": f.blob([]byte("{}")), "size": 2},
		"annotations": map[string]string{"org.opencontainers.image.revision": "main@sha1:1"},
	})
}

func (f *fixture) manifest(tag, mediaType string, content any) string {
	f.t.Helper()
	text, err := json.Marshal(content)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.put(http.MethodPut, "/v2/app/manifests/"+tag, mediaType, text)
}

// remote returns what the tests read with.
func (f *fixture) remote(login oci.Login, opts oci.Options) *oci.Remote {
	f.t.Helper()
	opts.Egress = reach
	remote, err := oci.NewRemote(f.url(), oci.Access{Login: login, Insecure: true}, opts)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(remote.Close)
	return remote
}

// pack makes a layer.
func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(files[name])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// noCanary fails if an error shows the secret, or what a server answered.
func noCanary(t *testing.T, err error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), canary) {
		t.Errorf("the error shows a secret: %v", err)
	}
}
