package apiserver

import (
	"bytes"
	"io"
	"net/http"

	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// ownService is the Service by which a definition names this server itself.
const (
	ownService   = "kubernetes"
	ownNamespace = "default"
)

// answerInProcess hands conversions that this server is to do itself to the
// extension's path, without a connection. Every write of a kind with two
// versions asks for some: the watch cache of each version converts it.
func answerInProcess(config *app.Config, extension *Extension) {
	if extension == nil || len(extension.Paths) == 0 {
		return
	}
	extra := &config.ApiExtensions.ExtraConfig
	wrapped := extra.AuthResolverWrapper
	extra.AuthResolverWrapper = func(next webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		if wrapped != nil {
			next = wrapped(next)
		}
		return &ownResolver{AuthenticationInfoResolver: next, paths: extension.Paths}
	}
}

// ownResolver knows how to reach the server itself.
type ownResolver struct {
	webhook.AuthenticationInfoResolver
	paths map[string]http.Handler
}

// ClientConfigForService returns a way to the server itself that leads to its
// paths, and to every other service the usual one.
func (r *ownResolver) ClientConfigForService(name, namespace string, port int) (*rest.Config, error) {
	cfg, err := r.AuthenticationInfoResolver.ClientConfigForService(name, namespace, port)
	if err != nil || name != ownService || namespace != ownNamespace {
		return cfg, err
	}
	own := rest.CopyConfig(cfg)
	own.Wrap(func(next http.RoundTripper) http.RoundTripper { return &inProcess{paths: r.paths, next: next} })
	return own, nil
}

// inProcess is a round trip that never leaves the process for the given paths.
type inProcess struct {
	paths map[string]http.Handler
	next  http.RoundTripper
}

// RoundTrip answers the request by the path's handler.
func (t *inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	handler, ok := t.paths[req.URL.Path]
	if !ok {
		return t.next.RoundTrip(req)
	}
	if req.Body == nil {
		req = req.Clone(req.Context())
		req.Body = http.NoBody
	}
	defer func() { _ = req.Body.Close() }()
	answer := &recorder{header: http.Header{}, code: http.StatusOK}
	handler.ServeHTTP(answer, req)
	return &http.Response{
		Status:        http.StatusText(answer.code),
		StatusCode:    answer.code,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        answer.header,
		Body:          io.NopCloser(&answer.body),
		ContentLength: int64(answer.body.Len()),
		Request:       req,
	}, nil
}

// recorder keeps what a handler answers.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header               { return r.header }
func (r *recorder) WriteHeader(code int)              { r.code = code }
func (r *recorder) Write(content []byte) (int, error) { return r.body.Write(content) }
