package alerting

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/policies/alerting"
	"github.com/flotilla-io/flotilla/policies/message"
	"github.com/flotilla-io/flotilla/sources/messenger"
)

// Start implements manager.Runnable: it sends what waits until ctx ends. What still waits then is lost.
func (r *Reconciler) Start(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	begins := r.opts.Clock.After(startTime)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-begins:
			begins = nil
			for _, e := range r.intake.begin() {
				r.take(e)
			}
		case <-r.outbox.wake:
			for _, key := range r.outbox.begin() {
				group.Go(func() { r.work(ctx, key) })
			}
		}
	}
}

// work sends what waits for one Alert, in order.
func (r *Reconciler) work(ctx context.Context, key client.ObjectKey) {
	for ctx.Err() == nil {
		e, more := r.outbox.next(key)
		if !more {
			return
		}
		r.deliver(ctx, key, e)
	}
}

// deliver sends a message, and tries again after faults that may pass, until its time is over.
func (r *Reconciler) deliver(ctx context.Context, key client.ObjectKey, e alerting.Event) {
	for pause := r.opts.FirstPause; ; pause = min(2*pause, r.opts.LastPause) {
		alert, err := r.try(ctx, key, e)
		switch {
		case errors.Is(err, errUnasked), ctx.Err() != nil:
			return
		case err == nil:
			arrives(r, alert)
			r.outbox.count(sent)
			return
		}
		wait, passes := passing(err, pause)
		ends := !passes || r.opts.Clock.Now().Add(wait).After(e.Timestamp.Add(r.opts.Timeout))
		if alert != nil {
			r.complain(alert, ReasonMessageNotSent, text(alert, err, passes, r.opts.Timeout))
		}
		if ends {
			log.FromContext(ctx).Info("a message was not sent", "alert", key, "about", e.Name(), "reason", e.Reason, "err", err.Error())
			r.outbox.count(failed)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-r.opts.Clock.After(wait):
		}
	}
}

// arrives says that messages of an Alert arrive again, if it was said that they do not.
func arrives(r *Reconciler, alert *notificationv1beta3.Alert) {
	if r.complaints.changed(client.ObjectKeyFromObject(alert), ReasonMessageNotSent, "", time.Time{}) {
		r.events.Event(alert, corev1.EventTypeNormal, alerting.ReasonMessageSent, "the Provider "+alert.Spec.ProviderRef.Name+" is told of events again")
	}
}

func text(alert *notificationv1beta3.Alert, err error, passes bool, timeout time.Duration) string {
	again := "until that is put right, messages are lost"
	if passes {
		again = fmt.Sprintf("each message is tried for %.0f minutes", timeout.Minutes())
	}
	return fmt.Sprintf("the Provider %s is not told of events: %v; %s", alert.Spec.ProviderRef.Name, err, again)
}

// passing reports whether a fault may pass, and after how long to try again.
func passing(err error, pause time.Duration) (time.Duration, bool) {
	var later *messenger.LaterError
	switch {
	case errors.Is(err, message.ErrProvider), errors.Is(err, messenger.ErrRefused), errors.Is(err, egress.ErrNotAllowed):
		return 0, false
	case errors.As(err, &later):
		return max(pause, later.After), true
	default:
		return pause, true
	}
}

// errUnasked means that an Alert does not ask for an Event, or not any more, or that its Provider has nothing to say of it.
var errUnasked = errors.New("nobody asks for it")

// try sends a message once, as the Alert and the Provider are now. The Alert is nil where it could not be read.
func (r *Reconciler) try(ctx context.Context, key client.ObjectKey, e alerting.Event) (*notificationv1beta3.Alert, error) {
	rule, asks := r.book.rule(key)
	if !asks || !rule.Selects(e) || !rule.Passes(e) {
		return nil, errUnasked
	}
	alert, provider := &notificationv1beta3.Alert{}, &notificationv1beta3.Provider{}
	if err := r.hub.Get(ctx, key, alert); err != nil {
		return nil, fmt.Errorf("read the Alert: %w", err)
	}
	if err := r.hub.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: alert.Spec.ProviderRef.Name}, provider); err != nil {
		return alert, r.opts.Secrets.Clean(alert, fmt.Errorf("read the Provider: %w", err))
	}
	return alert, r.opts.Secrets.Clean(alert, r.opts.Secrets.Clean(provider, send(ctx, r, alert, provider, rule.Of(e))))
}

// send sends a message of an Alert to a Provider.
func send(ctx context.Context, r *Reconciler, alert *notificationv1beta3.Alert, provider *notificationv1beta3.Provider, e alerting.Event) error {
	target, err := r.targets.of(ctx, provider)
	if err != nil {
		return err
	}
	request, err := message.Compose(target.Provider, e)
	if errors.Is(err, message.ErrNothing) {
		return errUnasked
	}
	if err != nil {
		return err
	}
	slots := r.turns.enter(alert.Namespace)
	defer r.turns.leave(alert.Namespace)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case slots <- struct{}{}:
	}
	defer func() { <-slots }()
	return r.opts.Send(ctx, target, request)
}

// What a Provider may give a message: less is a fault each time, more keeps others of its namespace waiting.
const (
	leastTimeout = time.Second
	mostTimeout  = 30 * time.Second
)

// targets reads where Providers have messages sent.
type targets struct {
	live client.Reader // without a cache
}

// of reads what a Provider refers to.
func (s targets) of(ctx context.Context, p *notificationv1beta3.Provider) (messenger.Target, error) {
	out := messenger.Target{Timeout: min(max(p.GetTimeout(), leastTimeout), mostTimeout)}
	out.Provider = message.Provider{Type: p.Spec.Type, Address: p.Spec.Address, Channel: p.Spec.Channel, Username: p.Spec.Username}
	var err error
	if out.Provider.Secret, err = s.secret(ctx, p, "secretRef", p.Spec.SecretRef); err != nil {
		return out, err
	}
	if out.Certificates, err = s.secret(ctx, p, "certSecretRef", p.Spec.CertSecretRef); err != nil {
		return out, err
	}
	if out.Proxy, err = s.secret(ctx, p, "proxySecretRef", p.Spec.ProxySecretRef); err != nil {
		return out, err
	}
	if out.Proxy == nil && p.Spec.Proxy != "" {
		out.Proxy = map[string][]byte{"address": []byte(p.Spec.Proxy)}
	}
	return out, nil
}

func (s targets) secret(ctx context.Context, p *notificationv1beta3.Provider, field string, ref *meta.LocalObjectReference) (map[string][]byte, error) {
	if ref == nil {
		return nil, nil
	}
	if faults := path.IsValidPathSegmentName(ref.Name); len(faults) > 0 {
		return nil, fmt.Errorf("%w: spec.%s: %q is no name of a Secret", message.ErrProvider, field, ref.Name)
	}
	var secret corev1.Secret
	err := s.live.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: ref.Name}, &secret)
	if apierrors.IsNotFound(err) { // it may come a moment later
		return nil, fmt.Errorf("spec.%s: the Secret %s does not exist: create it, or correct the Provider", field, ref.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the Secret %s: %w", ref.Name, err)
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	return secret.Data, nil
}
