package receiver

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/stagemetrics"
	"github.com/flotilla-io/flotilla/policies/expression"
	"github.com/flotilla-io/flotilla/policies/webhook"
	"github.com/flotilla-io/flotilla/sources/receiver/issuer"
)

const (
	// mostBody is how much of a request is read, in bytes.
	mostBody = 64 << 10
	// mostConnections is how many senders are listened to at a time.
	mostConnections = 256
	headerTimeout   = 5 * time.Second
	readTimeout     = 10 * time.Second
	writeTimeout    = 30 * time.Second
	idleTimeout     = 5 * time.Second
	mostHeader      = 32 << 10
	// work is how long one request may take.
	work = 20 * time.Second
)

// server answers requests.
type server struct {
	hub     client.Client
	hooks   *hooks
	opts    Options
	issuers *issuer.Issuers
	waker   *waker
	answers *prometheus.CounterVec
}

func newServer(hub client.Client, h *hooks, opts Options) *server {
	s := &server{hub: hub, hooks: h, opts: opts, issuers: issuer.New(opts.Egress, opts.Clock), waker: newWaker(hub, opts.Clock)}
	s.answers = stagemetrics.Registered(opts.Metrics, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flotilla_webhook_requests_total", Help: "Requests to Receivers, by the HTTP code of the answer",
	}, []string{"code"}))
	return s
}

// run listens and serves until ctx ends.
func (s *server) run(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.opts.Address)
	if err != nil {
		return fmt.Errorf("listen for webhooks: %w", err)
	}
	log := ctrl.LoggerFrom(ctx).WithName("receiver")
	out := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.ServeHTTP(w, r.WithContext(ctrl.LoggerInto(r.Context(), log)))
		}),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: mostHeader,
	}
	ended := make(chan error, 1)
	go func() { ended <- out.Serve(netutil.LimitListener(listener, mostConnections)) }()
	log.Info("Listening for webhooks", "address", listener.Addr().String())
	select {
	case err := <-ended:
		return fmt.Errorf("listen for webhooks: %w", err)
	case <-ctx.Done():
		_ = out.Close()
		return nil
	}
}

// answer is what a sender is told.
type answer struct {
	code int
	text string
}

// ServeHTTP answers one request, and counts it.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), work)
	defer cancel()
	out := s.handle(ctx, r)
	s.answers.WithLabelValues(fmt.Sprint(out.code)).Inc()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch out.code {
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodPost)
	}
	w.WriteHeader(out.code)
	_, _ = io.WriteString(w, out.text+"\n")
}

var nothing = answer{http.StatusNotFound, "there is nothing here"}

// handle finds the Receiver of a request, and does what it tells.
func (s *server) handle(ctx context.Context, r *http.Request) answer {
	if !strings.HasPrefix(r.URL.Path, notificationv1.ReceiverWebhookPath) {
		return nothing
	}
	of, found, after := s.hooks.at(r.URL.Path)
	switch {
	case !found:
		return nothing
	case r.Method != http.MethodPost:
		return answer{http.StatusMethodNotAllowed, "send POST"}
	case after > 0:
		return answer{http.StatusTooManyRequests, "too many requests: try again in a second"}
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, mostBody+1))
	switch {
	case err != nil:
		return answer{http.StatusBadRequest, "the body cannot be read"}
	case len(body) > mostBody:
		return answer{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", mostBody)}
	}
	object, token, out := s.current(ctx, of, r.URL.Path)
	if out != nil {
		return *out
	}
	request := webhook.Request{Header: r.Header.Get, Body: body}
	claims, err := s.verify(ctx, of, object, request, token)
	if err != nil {
		return s.refusal(ctx, object, of, err)
	}
	return s.tell(ctx, of, object, request, claims)
}

// current reads the Receiver once more: it may be another one by now, or have another token.
func (s *server) current(ctx context.Context, of hook, path string) (*notificationv1.Receiver, map[string]string, *answer) {
	object := &notificationv1.Receiver{}
	if err := s.hub.Get(ctx, of.key, object); apierrors.IsNotFound(err) {
		return nil, nil, &nothing
	} else if err != nil {
		return nil, nil, s.failed(ctx, object, of, err)
	}
	token, err := tokenOf(ctx, s.hub, object)
	if failure := loop.As(err, ""); failure != nil && failure.Class != loop.ClassRetry {
		return nil, nil, &nothing
	} else if err != nil {
		return nil, nil, s.failed(ctx, object, of, err)
	}
	same := subtle.ConstantTimeCompare([]byte(object.GetWebhookPath(token["token"])), []byte(path)) == 1
	if !same || object.UID != of.uid || object.DeletionTimestamp != nil {
		return nil, nil, &nothing
	}
	if object.Generation != of.generation || object.Spec.Suspend {
		return nil, nil, &answer{http.StatusServiceUnavailable, "the Receiver is not ready"}
	}
	return object, token, nil
}

func (s *server) failed(ctx context.Context, object *notificationv1.Receiver, of hook, err error) *answer {
	ctrl.LoggerFrom(ctx).Error(s.opts.Clean(object, err), "a webhook was not heard", "receiver", of.key)
	return &answer{http.StatusInternalServerError, "the control plane cannot look at it now: send it again"}
}

// verify finds out whether the sender may send. It returns the claims of a token that an issuer signed.
func (s *server) verify(ctx context.Context, of hook, object *notificationv1.Receiver, r webhook.Request, token map[string]string) (map[string]any, error) {
	if !webhook.ByIssuer(object.Spec.Type) {
		return nil, webhook.Verify(object.Spec.Type, r, token["token"])
	}
	bearer, ok := strings.CutPrefix(r.Header("Authorization"), "Bearer ")
	if !ok {
		return nil, fmt.Errorf("%w: the header Authorization has no Bearer token", issuer.ErrDenied)
	}
	if object.Spec.Type == notificationv1.GCRReceiver {
		return nil, s.google(ctx, bearer, token)
	}
	from := issuer.Of(bearer)
	by, known := of.checks[from]
	if !known {
		return nil, fmt.Errorf("%w: its issuer is not among spec.oidcProviders", issuer.ErrDenied)
	}
	claims, err := s.issuers.Verify(ctx, from, by.audience, bearer)
	if err != nil {
		return nil, err
	}
	return claims, by.hold(ctx, claims)
}

// googleIssuer signs what Pub/Sub sends.
const googleIssuer = "https://accounts.google.com"

func (s *server) google(ctx context.Context, bearer string, token map[string]string) error {
	claims, err := s.issuers.Verify(ctx, googleIssuer, token["audience"], bearer)
	if err != nil {
		return err
	}
	if claims["email"] != token["email"] || claims["email_verified"] != true {
		return fmt.Errorf("%w: it is of another account", issuer.ErrDenied)
	}
	return nil
}

// hold returns an error unless the claims are as the Receiver asks.
func (c checks) hold(ctx context.Context, claims map[string]any) error {
	vars, budget := map[string]any{}, expression.NewBudget(spent)
	values := map[string]any{"claims": claims, "vars": vars}
	for _, v := range c.variables {
		value, err := v.line.Value(ctx, values, budget)
		if err != nil {
			return fmt.Errorf("%w: the variable %s: %w", issuer.ErrDenied, v.name, err)
		}
		vars[v.name] = value
	}
	for _, v := range c.validations {
		holds, err := v.line.Bool(ctx, values, budget)
		if err != nil || !holds {
			return fmt.Errorf("%w: %s", issuer.ErrDenied, v.message)
		}
	}
	return nil
}

// refusal is the answer to a sender that may not send.
func (s *server) refusal(ctx context.Context, object *notificationv1.Receiver, of hook, err error) answer {
	if errors.Is(err, webhook.ErrDenied) || errors.Is(err, issuer.ErrDenied) {
		why := s.opts.Clean(object, err).Error()
		ctrl.LoggerFrom(ctx).Info("A webhook was refused", "receiver", of.key, "reason", why)
		return answer{http.StatusUnauthorized, why}
	}
	if errors.Is(err, egress.ErrNotAllowed) && !egress.IsAbsent(err) { // it leads elsewhere since its Receiver was looked at
		_ = s.failed(ctx, object, of, err)
		return answer{http.StatusForbidden, "the issuer of the token is where the control plane does not connect to"}
	}
	return *s.failed(ctx, object, of, err)
}

// tell does what a verified request asks for.
func (s *server) tell(ctx context.Context, of hook, object *notificationv1.Receiver, r webhook.Request, claims map[string]any) answer {
	event, err := webhook.Read(object.Spec.Type, r)
	if err != nil {
		return answer{http.StatusBadRequest, err.Error()}
	}
	if why, wanted := event.Wanted(object.Spec.Events); !wanted {
		return answer{http.StatusOK, why}
	}
	all, some, err := s.resources(ctx, object, of.filters)
	if err != nil {
		return *s.failed(ctx, object, of, err)
	}
	found, err := concerned(ctx, all, of.filters, event, claims)
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("A webhook was not heard", "receiver", of.key, "reason", s.opts.Clean(object, err).Error())
		return answer{http.StatusBadRequest, "a filter of the Receiver has no answer for this request"}
	}
	clean := func(err error) error { return s.opts.Clean(object, err) }
	if err := s.waker.wake(ctx, found, clean); err != nil {
		return *s.failed(ctx, object, of, err)
	}
	ctrl.LoggerFrom(ctx).V(1).Info("A webhook was heard", "receiver", of.key, "objects", names(found))
	text := fmt.Sprintf("%d of %d objects are looked at", len(found), len(all))
	if some {
		text += "; the condition of the Receiver names others at which nobody looks"
	}
	return answer{http.StatusOK, text}
}
