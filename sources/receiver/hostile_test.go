package receiver_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/receiver"
	issuers "github.com/flotilla-io/flotilla/sources/receiver/issuer"
)

var loopback = egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// serving returns the address of an issuer that says this of itself, %s being its address, and has these keys.
func serving(t *testing.T, about, keys string) string {
	t.Helper()
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/keys") {
			fmt.Fprint(w, keys)
			return
		}
		fmt.Fprint(w, strings.ReplaceAll(about, "%s", server.URL))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestIssuersOfOthers: what one tenant's issuer does, or says, has no effect on the tokens of another one's.
func TestIssuersOfOthers(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC))
	good := newIssuer(t)
	token := func(issuer, key string) string {
		return good.token(map[string]any{"iss": issuer, "aud": "a", "exp": clock.Now().Add(time.Hour).Unix()}, map[string]any{"kid": key})
	}
	for name, attack := range map[string]func(t *testing.T, x *issuers.Issuers){
		"one that never answers": func(t *testing.T, x *issuers.Issuers) {
			asked, end := make(chan struct{}), make(chan struct{})
			slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				close(asked)
				<-end
			}))
			t.Cleanup(slow.Close)
			t.Cleanup(func() { close(end) })
			go func() { _, _ = x.Verify(context.Background(), slow.URL, "a", token(slow.URL, "1")) }()
			<-asked
		},
		"one that names the keys of the other, and tokens with keys that nobody has": func(t *testing.T, x *issuers.Issuers) {
			evil := serving(t, `{"issuer":"%s","jwks_uri":"`+good.URL+`/keys"}`, "")
			for range 5 {
				if _, err := x.Verify(t.Context(), evil, "a", token(evil, "none")); !errors.Is(err, issuers.ErrDenied) {
					t.Errorf("a token that nobody signed: %v", err)
				}
			}
		},
		"the other's address with a slash": func(t *testing.T, x *issuers.Issuers) {
			if _, err := x.Verify(t.Context(), good.URL+"/", "a", token(good.URL+"/", "1")); err == nil || errors.Is(err, issuers.ErrDenied) {
				t.Errorf("an issuer that says that it is another one: %v", err)
			}
		},
		"more issuers than are kept": func(t *testing.T, x *issuers.Issuers) {
			for n := range 150 {
				_, _ = x.Verify(t.Context(), fmt.Sprintf("http://127.0.0.1:1/%d", n), "a", token("x", "1"))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := issuers.New(loopback, clock)
			attack(t, x)
			if _, err := x.Verify(t.Context(), good.URL, "a", token(good.URL, "1")); err != nil {
				t.Errorf("a good token: %v", err)
			}
		})
	}
}

// TestKeysThatCost: keys that take minutes to read, or to verify with, are none.
func TestKeysThatCost(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC))
	const bits = 80_000
	number := new(big.Int).Lsh(big.NewInt(1), bits)
	number.Add(number, big.NewInt(1))
	large := base64.RawURLEncoding.EncodeToString(number.Bytes())
	for name, key := range map[string]string{
		"large ones":            fmt.Sprintf(`{"kty":"RSA","kid":"1","n":%q,"e":"f____w"}`, large),
		"private ones":          fmt.Sprintf(`{"kty":"RSA","kid":"1","n":%[1]q,"e":"AQAB","d":%[1]q,"p":%[1]q,"q":%[1]q}`, large),
		"small ones":            `{"kty":"RSA","kid":"1","n":"AQAB","e":"AQAB"}`,
		"secrets":               `{"kty":"oct","kid":"1","k":"AQAB"}`,
		"ones for another use":  `{"kty":"RSA","use":"enc","kid":"1","n":"AQAB","e":"AQAB"}`,
		"what is none":          `[]`,
		"one with certificates": `{"kty":"RSA","kid":"1","x5c":["AQAB"],"n":"AQAB","e":"AQAB"}`,
	} {
		t.Run(name, func(t *testing.T) {
			address := serving(t, `{"issuer":"%s","jwks_uri":"%s/keys"}`, `{"keys":[`+strings.TrimSuffix(strings.Repeat(key+",", 3), ",")+`]}`)
			token := newIssuer(t).token(map[string]any{"iss": address, "aud": "a", "exp": clock.Now().Add(time.Hour).Unix()}, nil)
			if _, err := issuers.New(loopback, clock).Verify(t.Context(), address, "a", token); !errors.Is(err, issuers.ErrDenied) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestValidationsThatCost: all that a Receiver has evaluated for one request is bounded together.
func TestValidationsThatCost(t *testing.T) {
	known := newIssuer(t)
	const line = "[0,1,2,3,4,5,6,7,8,9].all(a,[0,1,2,3,4,5,6,7,8,9].all(b,[0,1,2,3,4,5,6,7,8,9].all(c,[0,1,2,3,4,5,6,7,8,9].all(d,a+b+c+d >= 0))))"
	many := func(n int) *bench {
		return newBench(t, receiver.Options{Egress: loopback}, repository("shop", "app", "main"), hook(notificationv1.GenericOIDCReceiver, func(r *notificationv1.Receiver) {
			provider := notificationv1.OIDCProvider{IssuerURL: known.URL}
			for range n {
				provider.Validations = append(provider.Validations, notificationv1.OIDCValidation{Expression: line, Message: "no"})
			}
			r.Spec.SecretRef, r.Spec.OIDCProviders = nil, []notificationv1.OIDCProvider{provider}
		}))
	}
	for n, want := range map[int]string{2: "200 1 of 1 objects are looked at", 300: "401 the token of the request does not count: no"} {
		b := many(n)
		path := b.reconcile().Status.WebhookPath
		token := known.token(map[string]any{"iss": known.URL, "aud": "notification-controller", "exp": b.clock.Now().Add(time.Minute).Unix()}, nil)
		if got := b.send(http.MethodPost, path, "{}", "Authorization", "Bearer "+token); got != want {
			t.Errorf("%d validations: got %s, want %s", n, got, want)
		}
	}
	ready := apimeta.FindStatusCondition(many(1000).reconcile().Status.Conditions, meta.ReadyCondition)
	if ready.Reason != receiver.ReasonInvalidExpression || !strings.Contains(ready.Message, "costs more than is allowed") {
		t.Errorf("1000 validations: %s %s", ready.Reason, ready.Message)
	}
}

// TestAPathThatIsTaken: of two Receivers whose paths are the same, the later one says so, and has it once it is free.
func TestAPathThatIsTaken(t *testing.T) {
	later := hook(notificationv1.GenericHMACReceiver)
	first := hook(notificationv1.GenericHMACReceiver, func(r *notificationv1.Receiver) { r.Namespace, r.Name, r.UID = "hop", "hooks", "2" })
	other := secret()
	other.Namespace = "hop"
	b := newBench(t, receiver.Options{}, later, first, secret(), other, repository("shop", "app", "main"))
	run := func() {
		if _, err := b.loop.Reconcile(b.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(first)}); err != nil {
			t.Fatal(err)
		}
	}
	run()
	got := b.reconcile()
	if ready := apimeta.FindStatusCondition(got.Status.Conditions, meta.ReadyCondition); ready.Reason != receiver.ReasonPathTaken || got.Status.WebhookPath != "" {
		t.Errorf("the later one: %s %s at %q", ready.Reason, ready.Message, got.Status.WebhookPath)
	}
	b.do(b.hub.Delete(t.Context(), first))
	run()
	if got := b.reconcile(); got.Status.WebhookPath != first.GetWebhookPath(token) {
		t.Errorf("the later one, once the path is free, is at %q", got.Status.WebhookPath)
	}
}

// TestTokensThatNobodySigned: they are refused, and their issuer is not asked.
func TestTokensThatNobodySigned(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC))
	by := newIssuer(t)
	for _, algorithm := range []any{"none", "None", "HS256", "", nil} {
		token := by.token(map[string]any{"iss": "http://127.0.0.1:1", "aud": "a", "exp": clock.Now().Add(time.Hour).Unix()}, map[string]any{"alg": algorithm})
		if _, err := issuers.New(loopback, clock).Verify(t.Context(), "http://127.0.0.1:1", "a", token); !errors.Is(err, issuers.ErrDenied) {
			t.Errorf("%v: %v", algorithm, err)
		}
	}
}
