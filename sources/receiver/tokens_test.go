package receiver_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/receiver"
)

// issuer is one of OpenID Connect, with a key of its own.
type issuer struct {
	*httptest.Server
	t     *testing.T
	key   *rsa.PrivateKey
	asked atomic.Int32
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	out := &issuer{t: t, key: key}
	out.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out.asked.Add(1)
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"id_token_signing_alg_values_supported":["none","HS256","RS256"]}`, out.URL, out.URL+"/keys")
		case "/keys":
			n := base64.RawURLEncoding.EncodeToString(key.N.Bytes())
			e := base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes())
			fmt.Fprintf(w, `{"keys":[{"kty":"RSA","use":"sig","alg":"RS256","kid":"1","n":%q,"e":%q}]}`, n, e)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(out.Close)
	return out
}

// token returns one with these claims, and with the header's fields changed.
func (i *issuer) token(claims map[string]any, header map[string]any) string {
	i.t.Helper()
	h := map[string]any{"alg": "RS256", "kid": "1"}
	for k, v := range header {
		h[k] = v
	}
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			i.t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	signed := part(h) + "." + part(claims)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, digest[:])
	if err != nil {
		i.t.Fatal(err)
	}
	if h["alg"] == "none" {
		signature = nil
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// TestTokensOfIssuers: a token counts if an issuer that the Receiver names has signed it for the audience, it is valid
// now, and its claims are as the Receiver asks.
func TestTokensOfIssuers(t *testing.T) {
	known, stranger := newIssuer(t), newIssuer(t)
	object := hook(notificationv1.GenericOIDCReceiver, func(r *notificationv1.Receiver) {
		r.Spec.SecretRef = nil
		r.Spec.OIDCProviders = []notificationv1.OIDCProvider{{
			IssuerURL: known.URL, Variables: []notificationv1.OIDCVariable{{Name: "owner", Expression: "claims.repository_owner"}},
			Validations: []notificationv1.OIDCValidation{{Expression: "vars.owner == 'shop'", Message: "only shop may send"}},
		}}
		r.Spec.ResourceFilter = "claims.ref == 'main'"
	})
	b := newBench(t, receiver.Options{Egress: egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}, object, repository("shop", "app", "main"))
	path := b.reconcile().Status.WebhookPath
	claims := func(change map[string]any) map[string]any {
		out := map[string]any{"iss": known.URL, "aud": "notification-controller", "exp": b.clock.Now().Add(time.Minute).Unix(), "repository_owner": "shop", "ref": "main"}
		for k, v := range change {
			out[k] = v
		}
		return out
	}
	denied := "401 the token of the request does not count: "
	unsigned := denied + "it is not signed, or in no way that counts"
	wrong := denied + "its signature, its audience or its time is wrong, or " + known.URL + " has no such key"
	for _, tc := range []struct{ name, token, want string }{
		{"a good one", known.token(claims(nil), nil), "200 1 of 1 objects are looked at"},
		{"of another branch", known.token(claims(map[string]any{"ref": "x"}), nil), "200 0 of 1 objects are looked at"},
		{"of another owner", known.token(claims(map[string]any{"repository_owner": "x"}), nil), denied + "only shop may send"},
		{"without an owner", known.token(map[string]any{"iss": known.URL, "aud": "notification-controller", "exp": b.clock.Now().Add(time.Minute).Unix()}, nil), denied + "the variable owner: the expression has no result: there is no repository_owner"},
		{"for another audience", known.token(claims(map[string]any{"aud": "x"}), nil), wrong},
		{"that has expired", known.token(claims(map[string]any{"exp": b.clock.Now().Add(-time.Minute).Unix()}), nil), wrong},
		{"that is not signed", known.token(claims(nil), map[string]any{"alg": "none"}), unsigned},
		{"that says HS256", known.token(claims(nil), map[string]any{"alg": "HS256"}), unsigned},
		{"signed by a stranger in its name", stranger.token(claims(nil), nil), wrong},
		{"signed with a key that is not known", stranger.token(claims(nil), map[string]any{"kid": "2"}), wrong},
		{"of a stranger", stranger.token(claims(map[string]any{"iss": stranger.URL}), nil), denied + "its issuer is not among spec.oidcProviders"},
		{"that is none", "x", denied + "its issuer is not among spec.oidcProviders"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b.clock.Step(10 * time.Second)
			if diff := cmp.Diff(tc.want, b.send(http.MethodPost, path, "{}", "Authorization", "Bearer "+tc.token)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
	if got := b.send(http.MethodPost, path, "{}"); got != denied+"the header Authorization has no Bearer token" {
		t.Errorf("without a token: %s", got)
	}
	if got := stranger.asked.Load(); got != 0 {
		t.Errorf("a stranger was asked %d times", got)
	}
	before := known.asked.Load()
	for range 15 { // of keys that are not known
		b.send(http.MethodPost, path, "{}", "Authorization", "Bearer "+stranger.token(claims(nil), map[string]any{"kid": "3"}))
	}
	if got := known.asked.Load() - before; got > 2 { // about itself, and for its keys
		t.Errorf("the issuer was asked %d times for keys that nobody has", got)
	}
}

// TestAnIssuerThatMayNotBeReached: whoever may write a Receiver cannot have the control plane look around.
func TestAnIssuerThatMayNotBeReached(t *testing.T) {
	inner := newIssuer(t)
	object := hook(notificationv1.GenericOIDCReceiver, func(r *notificationv1.Receiver) {
		r.Spec.SecretRef = nil
		r.Spec.OIDCProviders = []notificationv1.OIDCProvider{{IssuerURL: inner.URL, Validations: []notificationv1.OIDCValidation{{Expression: "true", Message: "x"}}}}
	})
	b := newBench(t, receiver.Options{}, object, repository("shop", "app", "main"))
	ready := apimeta.FindStatusCondition(b.reconcile().Status.Conditions, meta.ReadyCondition)
	want := notificationv1.ValidationFailedReason + " spec.oidcProviders[0].issuerURL: address not allowed: 127.0.0.1 leads to a loopback address; an administrator can allow that with flotillad serve --source-networks 127.0.0.0/8 (::1/128 for IPv6)"
	if got := ready.Reason + " " + ready.Message; ready.Status != metav1.ConditionFalse || got != want {
		t.Errorf("%s %s\nwant %s", ready.Status, got, want)
	}
	path := object.GetWebhookPath("")
	if got, want := b.send(http.MethodPost, path, "{}", "Authorization", "Bearer "+inner.token(map[string]any{"iss": inner.URL}, nil)), "404"; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if asked := inner.asked.Load(); asked != 0 {
		t.Errorf("it was asked %d times", asked)
	}
}

// TestKeysThatMayNotBeReached: an issuer that names keys where the control plane does not connect to has its tokens refused, and
// nobody is told to send them again.
func TestKeysThatMayNotBeReached(t *testing.T) {
	address := serving(t, `{"issuer":"%s","jwks_uri":"http://169.254.169.254/keys?%s"}`, `{}`)
	b := newBench(t, receiver.Options{Egress: loopback}, repository("shop", "app", "main"), hook(notificationv1.GenericOIDCReceiver, func(r *notificationv1.Receiver) {
		r.Spec.SecretRef = nil
		r.Spec.OIDCProviders = []notificationv1.OIDCProvider{{IssuerURL: address, Validations: []notificationv1.OIDCValidation{{Expression: "true", Message: "x"}}}}
	}))
	path := b.reconcile().Status.WebhookPath
	token := newIssuer(t).token(map[string]any{"iss": address, "aud": "notification-controller", "exp": b.clock.Now().Add(time.Minute).Unix()}, nil)
	if got, want := b.send(http.MethodPost, path, "{}", "Authorization", "Bearer "+token), "403 the issuer of the token is where the control plane does not connect to"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
