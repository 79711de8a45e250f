package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/audit"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// A Responder answers a request that does not reach a member.
type Responder interface {
	Object(code int, obj runtime.Object)
	Error(err error)
}

// handler carries one request to one cluster.
type handler struct {
	proxy   *Proxy
	cluster string
	answer  Responder
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if err := h.proxy.mayUpgrade(req, h.cluster); err != nil {
		h.answer.Error(err)
		return
	}
	if h.cluster == allClusters {
		everywhere{h.proxy}.serve(w, req, h.answer)
		return
	}
	t, err := h.proxy.trip(req.Context(), h.cluster, req.Header)
	if err != nil {
		h.answer.Error(err)
		return
	}
	path, err := memberPath(req.URL, h.cluster)
	if err != nil {
		h.answer.Error(badRequest(h.cluster, err))
		return
	}
	h.proxy.carry(w, req, t, path, h.answer)
}

// upgrading is the verb of a connection that is upgraded, whatever its method:
// it runs commands and forwards ports, which is more than to read.
const upgrading = "create"

// mayUpgrade refuses an upgrade to callers that may only read. The hub's server has authorized
// the verb of the method only, and WebSocket upgrades are GETs.
func (p *Proxy) mayUpgrade(req *http.Request, cluster string) error {
	who, known := genericapirequest.UserFrom(req.Context())
	protocol, err := upgradeOf(req.Header)
	if err != nil || protocol == "" || !known || req.Method == http.MethodPost {
		return nil //nolint:nilerr // what else is wrong is found on the way
	}
	allowed, err := p.opts.May(req.Context(), who, upgrading, cluster)
	if err != nil {
		return status(cluster, http.StatusInternalServerError, metav1.StatusReasonInternalError, "ask who may connect: %v", err)
	}
	if !allowed {
		return apierrors.NewForbidden(clusterv1alpha1.Resource(clusterv1alpha1.ResourcePluralCluster), cluster, fmt.Errorf(
			"User %q cannot %s resource \"clusters/proxy\" in API group %q at the cluster scope, which %s takes", who.GetName(), upgrading, clusterv1alpha1.GroupName, protocol))
	}
	return nil
}

// A trip is one request to a member that was checked and authorized.
type trip struct {
	link    *link
	creds   credentials
	caller  caller
	upgrade string // protocol that is asked for; empty for none
}

// trip returns how a request is sent to a cluster, or the error why it is not.
func (p *Proxy) trip(ctx context.Context, name string, header http.Header) (trip, error) {
	user, _ := genericapirequest.UserFrom(ctx)
	who, err := callerOf(user)
	if err != nil {
		return trip{}, status(name, http.StatusForbidden, metav1.StatusReasonForbidden, "%v", err)
	}
	upgrade, err := upgradeOf(header)
	if err != nil {
		return trip{}, badRequest(name, err)
	}
	cluster, err := p.opts.Cluster(ctx, name)
	if apierrors.IsNotFound(err) {
		p.forget(name)
		return trip{}, apierrors.NewNotFound(clusterv1alpha1.Resource(clusterv1alpha1.ResourcePluralCluster), name)
	}
	if err != nil {
		return trip{}, status(name, http.StatusInternalServerError, metav1.StatusReasonInternalError, "read it: %v", err)
	}
	link, creds, err := p.resolve(ctx, cluster)
	if err != nil {
		return trip{}, err
	}
	if err := link.prove(ctx, p.clock, creds); err != nil {
		return trip{}, err
	}
	return trip{link: link, creds: creds, caller: who.within(p.groups(ctx, name)), upgrade: upgrade}, nil
}

// carry sends a request to a member, and its answer to the caller.
func (p *Proxy) carry(w http.ResponseWriter, req *http.Request, t trip, path string, answer Responder) {
	ctx, done, ok := t.link.traffic.begin(req.Context())
	defer done()
	if !ok {
		answer.Error(status(t.link.cluster, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests to it are under way: try again"))
		return
	}
	defer recoverAbort(req.Context())
	transport := t.link.plain
	if t.upgrade != "" {
		transport = t.link.upgrade
	}
	(&httputil.ReverseProxy{
		Transport:      final{transport, &p.buffers},
		FlushInterval:  -1, // each event of a watch at once
		BufferPool:     &p.buffers,
		ErrorLog:       log.New(io.Discard, "", 0),
		Rewrite:        func(r *httputil.ProxyRequest) { t.rewrite(r, path) },
		ModifyResponse: func(resp *http.Response) error { return p.judge(resp, t, w.Header()) },
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			if req.Context().Err() != nil {
				return // nobody listens
			}
			if !errors.As(err, new(*apierrors.StatusError)) {
				p.count.answered(t.link.cluster, 0)
				t.link.doubt()
			}
			answer.Error(explain(t.link.cluster, err))
		},
	}).ServeHTTP(w, req.WithContext(ctx))
}

// recoverAbort swallows the panic of a copy that ended because the caller has hung up. Any other
// panic goes on, which cuts the connection: a caller must not take half an answer for a whole one.
func recoverAbort(ctx context.Context) {
	switch reason := recover(); {
	case reason == nil, reason == http.ErrAbortHandler && ctx.Err() != nil: //nolint:errorlint // a panic's value
	default:
		panic(reason)
	}
}

// rewrite turns the caller's request into the one that the member receives.
func (t trip) rewrite(r *httputil.ProxyRequest, path string) {
	out := r.Out
	out.URL, out.Host = t.location(path, queryOf(r.In)), ""
	strip(out.Header)
	if id := audit.GetAuditIDTruncated(r.In.Context()); id != "" {
		out.Header.Set("Audit-Id", id)
	}
	t.caller.introduce(out.Header, t.creds.impersonator)
}

// location returns the URL of a path of the member, with parameters.
func (t trip) location(path, query string) *url.URL {
	base := t.link.base
	escaped := strings.TrimSuffix(base.EscapedPath(), "/") + path
	unescaped, err := url.PathUnescape(escaped)
	if err != nil {
		unescaped = escaped // what memberPath returns can be unescaped
	}
	return &url.URL{Scheme: base.Scheme, Host: base.Host, Path: unescaped, RawPath: escaped, RawQuery: query}
}

// final is a transport whose answers are final: interim ones would set headers
// before judge has seen them. An answer ends whether or not the caller has
// sent all of the request.
type final struct {
	next    http.RoundTripper
	buffers *buffers
}

// RoundTrip implements http.RoundTripper.
func (f final) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.WithContext(bare{req.Context()})
	out.Body = f.buffers.loose(req.Body)
	return f.next.RoundTrip(out)
}

// bare is a context without values: those of the caller's request must not reach
// the member's transport, such as the httptrace that wants interim answers.
type bare struct{ context.Context } //nolint:containedctx // it is one

// Value implements context.Context.
func (bare) Value(any) any { return nil }

// private are headers that a member must not set on the hub's behalf.
var private = []string{
	"Set-Cookie", "Set-Cookie2", "Location", "Refresh", "Alt-Svc", "Strict-Transport-Security", "Clear-Site-Data", "Www-Authenticate",
	"Proxy-Authenticate", "Service-Worker-Allowed", "Sourcemap", "Public-Key-Pins",
}

// judge checks a member's answer before any of it is passed on.
func (p *Proxy) judge(resp *http.Response, t trip, given http.Header) error {
	name := t.link.cluster
	p.count.answered(name, resp.StatusCode)
	switch code := resp.StatusCode; {
	case code == http.StatusSwitchingProtocols && (t.upgrade == "" || !strings.EqualFold(resp.Header.Get("Upgrade"), t.upgrade)):
		return badGateway(name, "it switches to a protocol that was not asked for")
	case code >= 300 && code < 400 && code != http.StatusNotModified:
		return badGateway(name, "it answers with a redirect, which is not followed")
	case code == http.StatusUnauthorized:
		p.refused(t.link)
		return badGateway(name, "it does not accept the impersonator's token of secret %s/%s: was that replaced in the cluster?", t.creds.of.impersonator.Namespace, t.creds.of.impersonator.Name)
	}
	if sizeOf(resp.Header) > mostHeaders {
		return badGateway(name, "the headers of its answer are larger than %d bytes", mostHeaders)
	}
	for _, header := range private {
		resp.Header.Del(header)
	}
	for header := range resp.Header {
		if _, set := given[header]; set || strings.HasPrefix(header, "Access-Control-") {
			delete(resp.Header, header)
		}
	}
	return nil
}

// sizeOf is how many bytes headers are.
func sizeOf(header http.Header) int {
	size := 0
	for name, values := range header {
		for _, value := range values {
			size += len(name) + len(value)
		}
	}
	return size
}
