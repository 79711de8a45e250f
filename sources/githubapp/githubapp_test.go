package githubapp_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/sources/githubapp"
)

// canary must never show.
const canary = "CANARY-9b1d"

var start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func newKey(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func pemOf(kind string, content []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
}

func data(secret map[string]string) map[string][]byte {
	out := map[string][]byte{}
	for k, v := range secret {
		out[k] = []byte(v)
	}
	return out
}

// with returns a copy of a Secret with another value; empty removes the key.
func with(secret map[string]string, key, value string) map[string]string {
	out := map[string]string{}
	for k, v := range secret {
		out[k] = v
	}
	out[key] = value
	return out
}

func TestParse(t *testing.T) {
	key := newKey(t, 2048)
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	eighth, _ := x509.MarshalPKCS8PrivateKey(key)
	curve, _ := x509.MarshalPKCS8PrivateKey(other)
	good := map[string]string{"githubAppID": "123456", "githubAppPrivateKey": pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)), "githubAppInstallationID": "7654321"}
	for name, tc := range map[string]struct {
		secret map[string]string
		says   string
	}{
		"an installation":          {secret: good},
		"line breaks at the end":   {secret: with(good, "githubAppID", "123456\n")},
		"an owner":                 {secret: with(with(good, "githubAppInstallationID", ""), "githubAppInstallationOwner", "acme-inc")},
		"a client ID":              {secret: with(good, "githubAppID", "Iv23liABC.def")},
		"PKCS #8":                  {secret: with(good, "githubAppPrivateKey", pemOf("PRIVATE KEY", eighth))},
		"a server of one's own":    {secret: with(good, "githubAppBaseURL", "https://github.example.com/api/v3/")},
		"no ID":                    {secret: with(good, "githubAppID", ""), says: "keys githubAppID and githubAppPrivateKey go together"},
		"no key":                   {secret: with(good, "githubAppPrivateKey", ""), says: "go together"},
		"no installation":          {secret: with(good, "githubAppInstallationID", ""), says: "exactly one of the keys githubAppInstallationOwner and githubAppInstallationID"},
		"both":                     {secret: with(good, "githubAppInstallationOwner", "acme"), says: "exactly one"},
		"an ID with a path":        {secret: with(good, "githubAppInstallationID", "1/../"+canary), says: "githubAppInstallationID is no number"},
		"an owner with a path":     {secret: with(with(good, "githubAppInstallationID", ""), "githubAppInstallationOwner", canary+"/x"), says: "githubAppInstallationOwner is no name"},
		"an ID that is none":       {secret: with(good, "githubAppID", canary+" x"), says: "githubAppID is no ID"},
		"no PEM":                   {secret: with(good, "githubAppPrivateKey", canary), says: "githubAppPrivateKey holds no RSA private key"},
		"another kind of key":      {secret: with(good, "githubAppPrivateKey", pemOf("PRIVATE KEY", curve)), says: "holds no RSA private key"},
		"PEM of nothing":           {secret: with(good, "githubAppPrivateKey", pemOf("RSA PRIVATE KEY", []byte(canary))), says: "holds no RSA private key"},
		"a key that takes minutes": {secret: with(good, "githubAppPrivateKey", pemOf("RSA PRIVATE KEY", make([]byte, 7000))), says: "a private key of more than 8192 bytes is not read"},
		"a short key":              {secret: with(good, "githubAppPrivateKey", pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(newKey(t, 1024)))), says: "fewer than 2048 bits"},
		"an address without TLS":   {secret: with(good, "githubAppBaseURL", "http://"+canary), says: "githubAppBaseURL is not the https URL"},
		"an address with a user":   {secret: with(good, "githubAppBaseURL", "https://u:"+canary+"@h"), says: "githubAppBaseURL is not the https URL"},
		"an address with a query":  {secret: with(good, "githubAppBaseURL", "https://h/?"+canary), says: "githubAppBaseURL is not the https URL"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := githubapp.Parse(data(tc.secret))
			if tc.says == "" && err != nil || tc.says != "" && (!errors.Is(err, githubapp.ErrSecret) || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("error = %v, want one saying %q", err, tc.says)
			}
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("a value shows in: %v", err)
			}
			if s := fmt.Sprintf("%v %+v %#v", a, a, a); strings.Contains(s, "123456") {
				t.Errorf("the App prints as %s", s)
			}
		})
	}
	if githubapp.In(data(map[string]string{"username": "u"})) || !githubapp.In(data(good)) {
		t.Error("In does not tell a GitHub App from others")
	}
}

// forge stands for GitHub's API. It verifies what it is asked with.
type forge struct {
	t      *testing.T
	key    *rsa.PublicKey
	clock  *clocktesting.FakePassiveClock
	asked  []string
	answer func(w http.ResponseWriter, path string)
}

func (f *forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.asked = append(f.asked, r.Method+" "+r.URL.Path)
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(f.key, crypto.SHA256, sum[:], signature) != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var head, claim map[string]any
	for i, into := range []*map[string]any{&head, &claim} {
		text, _ := base64.RawURLEncoding.DecodeString(parts[i])
		if err := json.Unmarshal(text, into); err != nil {
			f.t.Error(err)
		}
	}
	now := float64(f.clock.Now().Unix())
	want := map[string]any{"iat": now - 60, "exp": now + 480, "iss": "123456", "alg": "RS256", "typ": "JWT"}
	head["iat"], head["exp"], head["iss"] = claim["iat"], claim["exp"], claim["iss"]
	if diff := cmp.Diff(want, head); diff != "" {
		f.t.Errorf("claim (-want +got):\n%s", diff)
	}
	f.answer(w, r.URL.Path)
}

func (f *forge) take() []string {
	out := f.asked
	f.asked = nil
	return out
}

func TestTokens(t *testing.T) {
	key := newKey(t, 2048)
	now := clocktesting.NewFakePassiveClock(start)
	f := &forge{t: t, key: &key.PublicKey, clock: now}
	s := httptest.NewTLSServer(f)
	t.Cleanup(s.Close)
	secret := map[string]string{"githubAppID": "123456", "githubAppPrivateKey": pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)), "githubAppInstallationOwner": "acme", "githubAppBaseURL": s.URL + "/api/v3"}
	parse := func(secret map[string]string) githubapp.App {
		a, err := githubapp.Parse(data(secret))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	app := parse(secret)
	made := 0
	f.answer = func(w http.ResponseWriter, path string) {
		switch path {
		case "/api/v3/users/acme/installation":
			fmt.Fprint(w, `{"id": 77}`)
		case "/api/v3/app/installations/77/access_tokens":
			made++
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"token": "ghs_%d", "expires_at": %q}`, made, now.Now().Add(time.Hour).Format(time.RFC3339))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}
	tokens := githubapp.NewTokens(now)
	look := func(want string, asked ...string) {
		t.Helper()
		got, err := tokens.Token(t.Context(), app, s.Client().Transport)
		if err != nil || got != want {
			t.Errorf("Token = %q, %v; want %q", got, err, want)
		}
		if diff := cmp.Diff(asked, f.take()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	}
	all := []string{"GET /api/v3/orgs/acme/installation", "GET /api/v3/users/acme/installation", "POST /api/v3/app/installations/77/access_tokens"}
	look("ghs_1", all...)
	look("ghs_1")
	now.SetTime(start.Add(54 * time.Minute))
	look("ghs_1")
	now.SetTime(start.Add(56 * time.Minute))
	look("ghs_2", all...)
	tokens.Forget(app)
	look("ghs_3", all...)
	app = parse(with(with(secret, "githubAppInstallationOwner", ""), "githubAppInstallationID", "77"))
	look("ghs_4", all[2])
}

func TestTokensThatAreRefused(t *testing.T) {
	key := newKey(t, 2048)
	now := clocktesting.NewFakePassiveClock(start)
	f := &forge{t: t, key: &key.PublicKey, clock: now}
	s := httptest.NewTLSServer(f)
	t.Cleanup(s.Close)
	secret := map[string]string{"githubAppID": "123456", "githubAppPrivateKey": pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)), "githubAppInstallationID": "77", "githubAppBaseURL": s.URL}
	by := func(code int, body string) func(http.ResponseWriter, string) {
		return func(w http.ResponseWriter, _ string) {
			w.Header().Set("Location", "/"+canary)
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	expires := start.Add(time.Hour).Format(time.RFC3339)
	for name, tc := range map[string]struct {
		secret map[string]string
		answer func(http.ResponseWriter, string)
		want   error
		says   string
	}{
		"an App that is installed nowhere":      {secret: with(with(secret, "githubAppInstallationID", ""), "githubAppInstallationOwner", "acme"), answer: by(404, canary), want: githubapp.ErrRefused, says: "HTTP 404"},
		"an installation that is not there":     {answer: by(404, canary), want: githubapp.ErrRefused, says: "it is not installed there"},
		"a key of another App":                  {secret: with(secret, "githubAppPrivateKey", pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(newKey(t, 2048)))), want: githubapp.ErrRefused, says: "HTTP 401"},
		"a suspended installation":              {answer: by(403, canary), want: githubapp.ErrRefused, says: "HTTP 403"},
		"a fault":                               {answer: by(503, canary), says: "HTTP 503"},
		"a redirect":                            {answer: by(307, canary), says: "HTTP 307"},
		"a page":                                {answer: by(201, "<html>"+canary), want: githubapp.ErrAnswer},
		"no token":                              {answer: by(201, `{"expires_at": "`+expires+`"}`), want: githubapp.ErrAnswer},
		"a token that is a header of its own":   {answer: by(201, `{"token": "x\r\nHost: y", "expires_at": "`+expires+`"}`), want: githubapp.ErrAnswer},
		"a token that never ends":               {answer: by(201, `{"token": "`+canary+`"}`), want: githubapp.ErrAnswer},
		"a token that is longer than any":       {answer: by(201, `{"token": "`+strings.Repeat("x", 5000)+`", "expires_at": "`+expires+`"}`), want: githubapp.ErrAnswer},
		"an answer without an end":              {answer: by(201, `{"token": "`+strings.Repeat("x", 1<<20)), want: githubapp.ErrAnswer},
		"an installation that is a number of 0": {secret: with(with(secret, "githubAppInstallationID", ""), "githubAppInstallationOwner", "acme"), answer: by(200, `{"id": 0}`), want: githubapp.ErrAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			f.answer = tc.answer
			if tc.secret == nil {
				tc.secret = secret
			}
			app, err := githubapp.Parse(data(tc.secret))
			if err != nil {
				t.Fatal(err)
			}
			got, err := githubapp.NewTokens(now).Token(t.Context(), app, s.Client().Transport)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), canary) {
				t.Errorf("Token = %q, %v; want %v saying %q", got, err, tc.want, tc.says)
			}
		})
	}
}
