package oci_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/oci"
)

// wants makes the registry ask for basic authentication.
func (f *fixture) wants(username, password string) {
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if u, p, ok := r.BasicAuth(); ok && u == username && p == password {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="`+canary+`"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}

// TestBasicAuthentication checks that the login is sent where it is wanted, and from then on with the first request.
func TestBasicAuthentication(t *testing.T) {
	f := newFixture(t)
	f.push("latest", pack(t, nil))
	f.wants("ann", canary)
	remote := f.remote(oci.Login{Username: "ann", Password: canary}, oci.Options{})
	for range 3 {
		if _, err := remote.Resolve(t.Context(), oci.Ref{}); err != nil {
			t.Fatal(err)
		}
	}
	if len(f.asked) != 4 {
		t.Errorf("requests: %q, want one more than questions", f.asked)
	}
	for name, login := range map[string]oci.Login{"none": {}, "a wrong one": {Username: "ann", Password: "wrong" + canary}, "half of one": {Username: "ann"}} {
		_, err := f.remote(login, oci.Options{}).Resolve(t.Context(), oci.Ref{})
		if !errors.Is(err, oci.ErrUnauthorized) {
			t.Errorf("%s: %v, want %v", name, err, oci.ErrUnauthorized)
		}
		noCanary(t, err)
	}
}

// tokens makes the registry ask for tokens of the server at realm.
func (f *fixture) tokens(realm, token string) {
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer "+token || !strings.HasPrefix(r.URL.Path, "/v2/") {
			return r.URL.Path == "/token"
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s",service="registry",scope="repository:app:pull"`, realm))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}

// TestTokens checks that a token is asked for once while it lives, and with the login.
func TestTokens(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct {
		login oci.Login
		want  string
	}{
		"nobody":            {oci.Login{}, "GET  scope=repository%3Aapp%3Apull&service=registry"},
		"a name":            {oci.Login{Username: "ann", Password: canary}, "GET ann:" + canary + " scope=repository%3Aapp%3Apull&service=registry"},
		"an identity token": {oci.Login{Username: "<token>", IdentityToken: canary}, "POST  client_id=flotilla&grant_type=refresh_token&refresh_token=" + canary + "&scope=repository%3Aapp%3Apull&service=registry"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.push("latest", pack(t, nil))
			var got []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				u, p, ok := r.BasicAuth()
				if ok {
					u += ":" + p
				}
				_ = r.ParseForm()
				got = append(got, r.Method+" "+u+" "+r.Form.Encode())
				fmt.Fprint(w, `{"token":"t1","expires_in":300}`)
			}))
			defer server.Close()
			f.tokens(server.URL+"/token", "t1")
			remote := f.remote(tc.login, oci.Options{Clock: now})
			for _, wait := range []time.Duration{0, time.Minute, time.Minute, 5 * time.Minute} {
				now.SetTime(now.Now().Add(wait))
				if _, err := remote.Resolve(t.Context(), oci.Ref{}); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff([]string{tc.want, tc.want}, got); diff != "" {
				t.Errorf("requests for tokens (-want +got):\n%s", diff)
			}
			if len(f.asked) != 5 {
				t.Errorf("requests to the registry: %q, want one more than questions", f.asked)
			}
		})
	}
}

// TestTokensFromElsewhere checks that the login goes to no other domain, nor the token of one registry to another host.
func TestTokensFromElsewhere(t *testing.T) {
	for name, tc := range map[string]struct {
		realm string
		login oci.Login
		want  error
	}{
		"another domain":              {"https://tokens.evil.test/token", oci.Login{Username: "ann", Password: canary}, oci.ErrRedirect},
		"the metadata of the machine": {"http://169.254.169.254/token", oci.Login{}, oci.ErrRedirect},
		"a file":                      {"file:///etc/passwd", oci.Login{}, oci.ErrMalformed},
		"nothing":                     {"", oci.Login{}, oci.ErrUnauthorized},
		"what is no address":          {"https://" + canary + " x", oci.Login{}, oci.ErrMalformed},
		"one with a login of its own": {"http://u:" + canary + "@127.0.0.1/token", oci.Login{}, oci.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.push("latest", pack(t, nil))
			f.tokens(tc.realm, "t1")
			_, err := f.remote(tc.login, oci.Options{}).Resolve(t.Context(), oci.Ref{})
			if !errors.Is(err, tc.want) {
				t.Errorf("the error is %v, want %v", err, tc.want)
			}
			noCanary(t, err)
		})
	}
	for name, answer := range map[string]string{"no JSON": canary, "no token": `{"note":"` + canary + `"}`, "without an end": strings.Repeat(" ", 100<<10)} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
			defer server.Close()
			f.tokens(server.URL, "t1")
			_, err := f.remote(oci.Login{}, oci.Options{}).Resolve(t.Context(), oci.Ref{})
			if !errors.Is(err, oci.ErrMalformed) && !errors.Is(err, oci.ErrTooLarge) {
				t.Errorf("the error is %v", err)
			}
			noCanary(t, err)
		})
	}
}

// TestLoginsStayAtHome checks that a redirect takes no login along.
func TestLoginsStayAtHome(t *testing.T) {
	f := newFixture(t)
	layer := pack(t, map[string]string{"app.yaml": "one"})
	digest := f.push("latest", layer)
	var came []http.Header
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came = append(came, r.Header)
		_, _ = w.Write(layer)
	}))
	defer elsewhere.Close()
	f.wants("ann", canary)
	basic := f.before
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !basic(w, r) && strings.Contains(r.URL.Path, "/blobs/") {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
			return true
		}
		return w.Header().Get("WWW-Authenticate") != ""
	}
	remote := f.remote(oci.Login{Username: "ann", Password: canary}, oci.Options{})
	m, err := remote.Manifest(t.Context(), digest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Layer(t.Context(), m.Layers[0]); err != nil {
		t.Fatal(err)
	}
	if len(came) != 1 || came[0].Get("Authorization") != "" {
		t.Errorf("what came elsewhere: %v", came)
	}
}

// TestTLS checks that a registry has to prove who it is, and that http is for spec.insecure alone.
func TestTLS(t *testing.T) {
	f := unstarted(t)
	f.server = httptest.NewTLSServer(f)
	t.Cleanup(f.server.Close)
	f.push("latest", pack(t, nil))
	read := func(access oci.Access) error {
		remote, err := oci.NewRemote(f.url(), access, oci.Options{Egress: reach})
		if err != nil {
			t.Fatal(err)
		}
		defer remote.Close()
		_, err = remote.Resolve(t.Context(), oci.Ref{})
		return err
	}
	if err := read(oci.Access{}); !errors.Is(err, oci.ErrTLS) {
		t.Errorf("without the authority: %v, want %v", err, oci.ErrTLS)
	}
	trusted := f.server.Client().Transport.(*http.Transport).TLSClientConfig
	if err := read(oci.Access{TLS: trusted}); err != nil {
		t.Errorf("with the authority: %v", err)
	}
	plain := newFixture(t)
	plain.push("latest", pack(t, nil))
	f.server = plain.server
	if err := read(oci.Access{}); !errors.Is(err, oci.ErrTLS) {
		t.Errorf("without TLS: %v, want %v", err, oci.ErrTLS)
	}
}

func TestLogins(t *testing.T) {
	auth := base64.StdEncoding.EncodeToString([]byte("ann:" + canary))
	var logins oci.Logins
	if err := logins.Add(map[string][]byte{".dockerconfigjson": []byte(`{"auths":{
		"ghcr.io":{"auth":"` + auth + `"},
		"https://index.docker.io/v1/":{"username":"hub","password":"` + canary + `"},
		"registry.test/team":{"username":"team","password":"` + canary + `"},
		"registry.test":{"username":"all","password":"` + canary + `"},
		"*.pattern.test":{"username":"pattern","password":"` + canary + `"},
		"token.test":{"identitytoken":"` + canary + `"}}}`)}); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[[2]string]string{
		{"ghcr.io", "org/app"}:             "ann",
		{"index.docker.io", "library/app"}: "hub",
		{"registry.test", "team/app"}:      "team",
		{"registry.test", "teams/app"}:     "all",
		{"a.pattern.test", "app"}:          "pattern",
		{"a.b.pattern.test", "app"}:        "",
		{"evilghcr.io", "app"}:             "",
		{"ghcr.io.evil.test", "app"}:       "",
		{"ghcr.io:8443", "app"}:            "",
	} {
		if got := logins.For(at[0], at[1]); got.Username != want {
			t.Errorf("%v: the login of %q, want that of %q", at, got.Username, want)
		}
	}
	if got := logins.For("token.test", "app"); got.IdentityToken != canary {
		t.Error("there is no identity token")
	}
	if text := fmt.Sprintf("%v %+v %#v", logins.For("ghcr.io", "app"), logins.For("ghcr.io", "app"), logins.For("ghcr.io", "app")); strings.Contains(text, canary) {
		t.Errorf("a login prints as %s", text)
	}
	for name, data := range map[string]map[string][]byte{
		"nothing":            {},
		"other keys":         {"username": []byte("ann"), "password": []byte(canary)},
		"no JSON":            {".dockerconfigjson": []byte(canary)},
		"auth in plain text": {".dockerconfigjson": []byte(`{"auths":{"ghcr.io":{"auth":"` + canary + `:"}}}`)},
		"auth without parts": {".dockerconfigjson": []byte(`{"auths":{"ghcr.io":{"auth":"` + base64.StdEncoding.EncodeToString([]byte(canary)) + `"}}}`)},
	} {
		var logins oci.Logins
		err := logins.Add(data)
		if !errors.Is(err, oci.ErrCredentials) {
			t.Errorf("%s: %v, want %v", name, err, oci.ErrCredentials)
		}
		noCanary(t, err)
	}
}

// TestProxies checks that a registry is reached by a proxy that knows it, whose own login is another one, and that no proxy leads to
// where nobody may go.
func TestProxies(t *testing.T) {
	f := newFixture(t)
	digest := f.push("latest", pack(t, map[string]string{"app.yaml": "one"}))
	f.wants("ann", canary)
	var came []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, p := proxyLogin(r)
		came = append(came, r.Host+" "+u+" "+p)
		if u != "proxied" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		f.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	at := strings.TrimPrefix(proxy.URL, "http://")
	for name, tc := range map[string]struct {
		address, proxy string
		want           error
	}{
		"a registry that the proxy alone knows": {"oci://registry.nowhere.test/app", "http://proxied:p@" + at, nil},
		"a proxy that wants a login":            {"oci://registry.nowhere.test/app", "http://stranger:" + canary + "@" + at, egress.ErrProxyUnauthorized},
		"a proxy where nobody may go":           {"oci://registry.nowhere.test/app", "http://169.254.169.254:3128", egress.ErrNotAllowed},
		"a registry where nobody may go":        {"oci://169.254.169.254/app", "http://proxied:p@" + at, egress.ErrNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			by, err := url.Parse(tc.proxy)
			if err != nil {
				t.Fatal(err)
			}
			access := oci.Access{Login: oci.Login{Username: "ann", Password: canary}, Insecure: true, Proxy: by}
			remote, err := oci.NewRemote(tc.address, access, oci.Options{Egress: reach})
			if err != nil {
				t.Fatal(err)
			}
			defer remote.Close()
			got, err := remote.Resolve(t.Context(), oci.Ref{})
			if !errors.Is(err, tc.want) || tc.want == nil && got.Digest != digest {
				t.Errorf("Resolve = %v, %v, want %v", got, err, tc.want)
			}
			noCanary(t, err)
		})
	}
	for _, who := range came {
		if !strings.HasPrefix(who, "registry.nowhere.test ") || strings.Contains(who, "ann") {
			t.Errorf("the proxy was asked %q", who)
		}
	}
}

// proxyLogin is the login for the proxy that a request has.
func proxyLogin(r *http.Request) (username, password string) {
	other := &http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	username, password, _ = other.BasicAuth()
	return username, password
}
