package receiver_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"github.com/go-logr/logr/funcr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/receiver"
)

// TestWhatIsNotToldOfAReceiver: what a Kustomization put into a Receiver of a Secret is neither in the log nor in the answer to a sender.
func TestWhatIsNotToldOfAReceiver(t *testing.T) {
	const canary = "canary7f3a9"
	clean := func(_ client.Object, err error) error {
		if err == nil || !strings.Contains(err.Error(), canary) {
			return err
		}
		return errors.New(strings.ReplaceAll(err.Error(), canary, "***"))
	}
	from := newIssuer(t)
	for name, tc := range map[string]struct {
		kind   string
		change func(*notificationv1.Receiver)
		fails  bool
		want   string
	}{
		"what a token is to be": {notificationv1.GenericOIDCReceiver, func(r *notificationv1.Receiver) {
			r.Spec.SecretRef = nil
			r.Spec.OIDCProviders = []notificationv1.OIDCProvider{{IssuerURL: from.URL, Validations: []notificationv1.OIDCValidation{{Expression: "claims.owner == 'x'", Message: "only " + canary + " may send"}}}}
		}, false, "401 the token of the request does not count: only *** may send"},
		"a filter without an answer": {notificationv1.GenericReceiver, func(r *notificationv1.Receiver) {
			r.Spec.ResourceFilter = "res.metadata.labels['" + canary + "'] == 'x'"
		}, false, "400 a filter of the Receiver has no answer for this request"},
		"what it names": {notificationv1.GenericReceiver, func(r *notificationv1.Receiver) { r.Spec.Resources[0].Name = canary }, true,
			"500 the control plane cannot look at it now: send it again"},
	} {
		t.Run(name, func(t *testing.T) {
			source := repository("shop", "app", "main")
			if tc.fails {
				source.SetName(canary)
			}
			b := newBench(t, receiver.Options{Clean: clean, Egress: egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}, hook(tc.kind, tc.change), source, secret())
			path := b.reconcile().Status.WebhookPath
			b.fails = tc.fails
			var mu sync.Mutex
			var log strings.Builder
			logger := funcr.New(func(prefix, args string) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintln(&log, prefix, args)
			}, funcr.Options{})
			r := httptest.NewRequestWithContext(ctrl.LoggerInto(t.Context(), logger), "POST", path, strings.NewReader("{}"))
			r.Header.Set("Authorization", "Bearer "+from.token(map[string]any{"iss": from.URL, "aud": "notification-controller", "exp": b.clock.Now().Add(time.Minute).Unix(), "owner": "shop"}, nil))
			w := httptest.NewRecorder()
			b.loop.Handler().ServeHTTP(w, r)
			if got := fmt.Sprintf("%d %s", w.Code, strings.TrimSpace(w.Body.String())); got != tc.want {
				t.Errorf("the answer is %s, want %s", got, tc.want)
			}
			if text := log.String(); strings.Contains(text, canary) || !strings.Contains(text, "***") {
				t.Errorf("the log says:\n%s", text)
			}
		})
	}
}
