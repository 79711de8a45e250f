// Package ociserver is a container registry in this process, for tests.
//
// In go files; out comes a registry that serves them as flux push artifact would have pushed them. It keeps everything in memory,
// asks for no login, and must never be reached from other machines.
package ociserver

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Media types of what Flux pushes.
const (
	Manifest = "application/vnd.oci.image.manifest.v1+json"
	Config   = "application/vnd.cncf.flux.config.v1+json"
	Layer    = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// Server is a registry.
type Server struct {
	http.Handler

	mu       sync.Mutex
	requests []string
	answer   func(w http.ResponseWriter, r *http.Request) bool
	real     http.Handler
}

// New returns an empty registry, which keeps no list of what refers to an artifact.
func New() *Server { return newServer(false) }

// NewWithReferrers returns an empty registry that keeps such lists.
func NewWithReferrers() *Server { return newServer(true) }

func newServer(referrers bool) *Server {
	s := &Server{real: registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(referrers))}
	s.Handler = http.HandlerFunc(s.serve)
	return s
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	answer := s.answer
	s.mu.Unlock()
	if answer == nil || !answer(w, r) {
		s.real.ServeHTTP(w, r)
	}
}

// Answer has a function answer in place of the registry, where that returns true; nil ends that.
func (s *Server) Answer(answer func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// Requests returns the requests since it was called last, such as "HEAD /v2/app/manifests/latest".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.requests
	s.requests = nil
	return out
}

// Push pushes an artifact of one layer under a tag, and returns the digest of its manifest.
func (s *Server) Push(ctx context.Context, repository, tag string, files, annotations map[string]string) (string, error) {
	layer, err := Pack(files)
	if err != nil {
		return "", err
	}
	return s.PushLayer(ctx, repository, tag, layer, annotations)
}

// PushLayer is Push for a layer that is packed already.
func (s *Server) PushLayer(ctx context.Context, repository, tag string, layer []byte, annotations map[string]string) (string, error) {
	for _, blob := range [][]byte{layer, []byte("{}")} {
		if err := s.put(ctx, http.MethodPost, "/v2/"+repository+"/blobs/uploads/?digest="+digestOf(blob), "application/octet-stream", blob); err != nil {
			return "", err
		}
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": Manifest, "annotations": annotations,
		"config": map[string]any{"mediaType": Config, "digest": digestOf([]byte("{}")), "size": 2},
		"layers": []any{map[string]any{"mediaType": Layer, "digest": digestOf(layer), "size": len(layer)}},
	})
	if err != nil {
		return "", fmt.Errorf("push %s:%s: %w", repository, tag, err)
	}
	return digestOf(manifest), s.put(ctx, http.MethodPut, "/v2/"+repository+"/manifests/"+tag, Manifest, manifest)
}

func (s *Server) put(ctx context.Context, method, path, contentType string, content []byte) error {
	req := httptest.NewRequestWithContext(ctx, method, path, bytes.NewReader(content))
	req.Header.Set("Content-Type", contentType)
	answer := httptest.NewRecorder()
	s.real.ServeHTTP(answer, req)
	if answer.Code != http.StatusCreated {
		return fmt.Errorf("%s %s: HTTP %d: %s", method, path, answer.Code, answer.Body)
	}
	return nil
}

func digestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

// Pack returns files as a layer. Equal files give equal bytes.
func Pack(files map[string]string) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(files[name])), Mode: 0o644}); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := io.WriteString(w, files[name]); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return out.Bytes(), nil
}
