package registration_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/cluster-bootstrap/token/jws"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/controlplane/pki"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/registration"
	"github.com/flotilla-io/flotilla/internal/registration/token"
)

var shared servertest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const (
	id, secret = "abcdef", "0123456789abcdef"
	canary     = id + "." + secret
)

// TestDiscover finds a control plane by a token that was just created.
func TestDiscover(t *testing.T) {
	env := shared.Env(t)
	admin, err := clientcmd.BuildConfigFromFlags("", env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	authorities, err := cert.ParseCertsPEM(admin.CAData)
	if err != nil {
		t.Fatal(err)
	}
	made, info, err := token.Create(t.Context(), env.Hub, token.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(info.Expires); left > token.DefaultTTL+time.Minute || left < token.DefaultTTL-time.Minute {
		t.Errorf("the token ends in %s", left)
	}
	d := registration.Discovery{Endpoint: strings.TrimPrefix(admin.Host, "https://"), Token: made, CAHashes: []string{strings.ToUpper(registration.CAHash(authorities[0]))}}
	cfg, err := registration.Discover(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Host != admin.Host || string(cfg.CAData) != string(admin.CAData) || cfg.BearerToken != made || cfg.Insecure {
		t.Errorf("found %s", cfg)
	}
	if _, err := token.Delete(t.Context(), env.Hub, made); err != nil {
		t.Fatal(err)
	}
	err = found(t, d, registration.ErrToken.Error()) // once the signer has noticed
	if !errors.Is(err, registration.ErrToken) || !strings.Contains(err.Error(), "flotilla token create makes another") || strings.Contains(err.Error(), made) {
		t.Errorf("by a token that is gone: %v", err)
	}
}

// found calls Discover until the error contains the given text, and returns the
// last error. Each attempt has a longer timeout: the error depends on an answer
// that comes in time, and the machine may be busy.
func found(t *testing.T, d registration.Discovery, says string) error {
	t.Helper()
	for d.Timeout = time.Second; ; d.Timeout *= 2 {
		_, err := registration.Discover(t.Context(), d)
		if d.Timeout > time.Minute || err != nil && strings.Contains(err.Error(), says) {
			return err
		}
	}
}

// fake answers like a control plane, or as a case wants it.
type fake struct {
	authority []byte // in the document
	sign      string // secret that signs it
	kind      func(asked int) string
	missing   bool
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.answer(w, r, 0) }

func (f *fake) answer(w http.ResponseWriter, r *http.Request, asked int) {
	if r.Header.Get("Authorization") != "" {
		http.Error(w, "a token came before it was known to whom", http.StatusTeapot)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if f.missing {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: 404})
		return
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[""] = &clientcmdapi.Cluster{Server: "https://x", CertificateAuthorityData: f.authority}
	content, err := clientcmd.Write(*config)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if f.kind != nil {
		content = append(content, f.kind(asked)...)
	}
	info := corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, Data: map[string]string{"kubeconfig": string(content)}}
	if f.sign != "" {
		signature, err := jws.ComputeDetachedSignature(string(content), id, f.sign)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		info.Data["jws-kubeconfig-"+id] = signature
	}
	_ = json.NewEncoder(w).Encode(info)
}

// serve runs a server with a certificate that was issued at a time.
func serve(t *testing.T, handler http.Handler, made time.Time, host string) (address string, authority []byte) {
	t.Helper()
	store, err := pki.Open(t.TempDir(), testingclock.NewFakeClock(made))
	if err != nil {
		t.Fatal(err)
	}
	file, err := store.Server("hub", host)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes are meant to fail
	server.StartTLS()
	t.Cleanup(server.Close)
	if authority, err = os.ReadFile(store.CAFile()); err != nil {
		t.Fatal(err)
	}
	return server.URL, authority
}

func hashOf(t *testing.T, authority []byte) string {
	t.Helper()
	certificates, err := cert.ParseCertsPEM(authority)
	if err != nil {
		t.Fatal(err)
	}
	return registration.CAHash(certificates[0])
}

// TestForeignControlPlanes checks the errors for control planes other than the
// one that was meant.
func TestForeignControlPlanes(t *testing.T) {
	day := 24 * time.Hour
	cases := map[string]struct {
		fake  fake
		age   time.Duration // of the certificate
		host  string
		hash  string // if it is not that of its authority
		skip  bool
		other bool // the document has another authority than the server
		late  bool // the error comes only when the time is over
		want  error
		says  string // empty where it is found
	}{
		"the one that was meant":                {fake: fake{sign: secret}},
		"one whose clock is ten minutes ahead":  {fake: fake{sign: secret}, age: -10 * time.Minute},
		"one whose clock is ten minutes behind": {fake: fake{sign: secret}, age: 10 * time.Minute},
		"one that is trusted by the token":      {fake: fake{sign: secret}, skip: true},
		"one that does not know the token":      {late: true, want: registration.ErrToken, says: "knows no token abcdef: it has expired, was used or deleted"},
		"one that knows but the public part":    {fake: fake{sign: "ffffffffffffffff"}, want: registration.ErrToken, says: "the token abcdef was copied wrongly, or somebody else answers at"},
		"one of another authority": {
			fake: fake{sign: secret}, hash: "sha256:" + strings.Repeat("0", 64), want: registration.ErrUntrusted, says: "which is none of those given",
		},
		"one that borrows a document": {fake: fake{sign: secret}, other: true, want: registration.ErrUntrusted, says: "is of another authority"},
		"one that takes none":         {fake: fake{missing: true}, late: true, says: "takes no registrations"},
		"one whose certificate is over": {
			fake: fake{sign: secret}, age: 2 * 365 * day, says: "which is not now by the clock of this machine: set the clock",
		},
		"one whose certificate is not yet":   {fake: fake{sign: secret}, age: -3 * day, says: "set the clock"},
		"one that is called something else":  {fake: fake{sign: secret}, host: "hub.example.org", says: "does not cover that name"},
		"one whose document holds something": {fake: fake{sign: secret, kind: func(int) string { return "\nclusters: 1\n" }}, want: registration.ErrUntrusted, says: "does not hold one cluster"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.host == "" {
				tc.host = "127.0.0.1"
			}
			handler := tc.fake
			address, authority := serve(t, &handler, time.Now().Add(-tc.age), tc.host)
			if tc.other {
				_, authority = serve(t, &handler, time.Now(), tc.host)
			}
			handler.authority = authority
			d := registration.Discovery{Endpoint: address, Token: canary, CAHashes: []string{hashOf(t, authority)}, Timeout: time.Minute}
			if tc.hash != "" {
				d.CAHashes = []string{tc.hash}
			}
			if tc.skip {
				d.CAHashes, d.UnsafeSkipCAVerification = nil, true
			}
			var err error
			if tc.late {
				err = found(t, d, tc.says)
			} else {
				_, err = registration.Discover(t.Context(), d)
			}
			switch {
			case tc.says == "":
				if err != nil {
					t.Errorf("= %v", err)
				}
			case err == nil || !strings.Contains(err.Error(), tc.says) || tc.want != nil && !errors.Is(err, tc.want):
				t.Errorf("= %v, want %q", err, tc.says)
			case strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n"):
				t.Errorf("tells too much: %v", err)
			}
		})
	}
}

// TestNobodyAnswers checks that the reason is reported at once, and not at every
// attempt.
func TestNobodyAnswers(t *testing.T) {
	var reported []string
	d := registration.Discovery{
		Endpoint: "127.0.0.1:1", Token: canary, UnsafeSkipCAVerification: true, Timeout: 1200 * time.Millisecond,
		Report: func(why error) { reported = append(reported, why.Error()) },
	}
	if _, err := registration.Discover(t.Context(), d); err == nil {
		t.Error("somebody is found")
	}
	want := []string{"no control plane answers at https://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused"}
	if diff := cmp.Diff(want, reported); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestWrongDiscoveries(t *testing.T) {
	good := registration.Discovery{Endpoint: "127.0.0.1:1", Token: canary, CAHashes: []string{"sha256:" + strings.Repeat("0", 64)}}
	cases := map[string]struct {
		change func(*registration.Discovery)
		says   string
	}{
		"nobody there":       {change: func(*registration.Discovery) {}, says: "no control plane answers at https://127.0.0.1:1"},
		"no token":           {change: func(d *registration.Discovery) { d.Token = "" }, says: "a token is 6 characters, a dot, and 16 characters"},
		"half a token":       {change: func(d *registration.Discovery) { d.Token = "abcdef.0123" }, says: "a token is 6 characters"},
		"no hash":            {change: func(d *registration.Discovery) { d.CAHashes = nil }, says: "no hash of its authority"},
		"another hash":       {change: func(d *registration.Discovery) { d.CAHashes = []string{"md5:00"} }, says: "is no hash of an authority"},
		"no address":         {change: func(d *registration.Discovery) { d.Endpoint = "" }, says: "give host:port"},
		"without TLS":        {change: func(d *registration.Discovery) { d.Endpoint = "http://hub" }, says: "is reached by https"},
		"a user in it":       {change: func(d *registration.Discovery) { d.Endpoint = "https://u:" + secret + "@hub" }, says: "more than host and port"},
		"a path in it":       {change: func(d *registration.Discovery) { d.Endpoint = "https://hub/api" }, says: "more than host and port"},
		"what is no address": {change: func(d *registration.Discovery) { d.Endpoint = "https://%zz" }, says: "is no address"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := good
			tc.change(&d)
			err := found(t, d, tc.says)
			if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), secret) {
				t.Errorf("= %v, want %q", err, tc.says)
			}
		})
	}
	t.Run("somebody has enough of waiting", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := registration.Discover(ctx, good); !errors.Is(err, context.Canceled) {
			t.Errorf("= %v", err)
		}
	})
}

func TestKubeconfig(t *testing.T) {
	env := shared.Env(t)
	admin, err := clientcmd.BuildConfigFromFlags("", env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	content, err := registration.Kubeconfig(admin, "north", registration.Credentials{Certificate: admin.CertData, Key: admin.KeyData})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	want := rest.Config{Host: admin.Host, TLSClientConfig: rest.TLSClientConfig{CAData: admin.CAData, CertData: admin.CertData, KeyData: admin.KeyData}}
	if got.Host != want.Host || string(got.CAData) != string(want.CAData) || string(got.CertData) != string(want.CertData) || string(got.KeyData) != string(want.KeyData) {
		t.Errorf("leads to %s", got)
	}
	from, to, err := registration.Life(admin.CertData)
	if err != nil || !from.Before(time.Now()) || !to.After(time.Now()) {
		t.Errorf("lives from %s to %s, %v", from, to, err)
	}
	if _, _, err := registration.Life([]byte("x")); err == nil {
		t.Error("what is no certificate has a life")
	}
}

// TestTurns checks that, where many clients use one token, each waits as the
// server suggests and gets an error if its time is over, also during the last
// attempt.
func TestTurns(t *testing.T) {
	const none = "the control plane gave no certificate within 1m0s: too many ask by the same token; a token of its own has its own turn: flotilla token create --cluster-name east"
	cases := map[string]struct {
		turned   int64 // how often the server is too busy
		over     int64 // the response during which the time is over; zero for none
		unheard  bool  // that response does not arrive
		want     error
		says     string // empty for any other error
		requests int64
	}{
		"it comes":                                 {turned: 2, want: registration.ErrToken, requests: 3},
		"the time is over while it waits":          {turned: 9, over: 2, want: registration.ErrNotNow, says: none, requests: 2},
		"the time is over while it asks once more": {turned: 9, over: 2, unheard: true, want: registration.ErrNotNow, says: none, requests: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			var asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body) // otherwise the server would not notice that the client is gone
				n := asked.Add(1)
				if n == tc.over {
					defer end()
				}
				if n == tc.over && tc.unheard {
					end()
					<-r.Context().Done()
				}
				if n > tc.turned {
					w.WriteHeader(http.StatusUnauthorized) // the next steps have tests of their own
					return
				}
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
			}))
			defer server.Close()
			_, err := registration.Request(ctx, &rest.Config{Host: server.URL}, registration.Options{Cluster: "east", Timeout: time.Minute})
			if !errors.Is(err, tc.want) || tc.says != "" && err.Error() != tc.says || asked.Load() != tc.requests {
				t.Errorf("asked %d times, error %v, want %d times and %v %s", asked.Load(), err, tc.requests, tc.want, tc.says)
			}
		})
	}
}

// TestATokenThatIsNotKnownYet checks that a token is tried again for a moment
// where it is not accepted, as it may be new, and not for long.
func TestATokenThatIsNotKnownYet(t *testing.T) {
	for name, tc := range map[string]struct {
		unknown  int64 // how often it is not accepted
		want     error
		requests int64
	}{
		"it is known soon": {unknown: 2, want: registration.ErrDenied, requests: 3},
		"it is never":      {unknown: 99, want: registration.ErrToken, requests: 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) <= tc.unknown {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				w.WriteHeader(http.StatusForbidden) // the next steps have tests of their own
			}))
			defer server.Close()
			_, err := registration.Request(t.Context(), &rest.Config{Host: server.URL}, registration.Options{Cluster: "east", Timeout: time.Minute})
			if !errors.Is(err, tc.want) || asked.Load() != tc.requests {
				t.Errorf("asked %d times, error %v, want %d times and %v", asked.Load(), err, tc.requests, tc.want)
			}
		})
	}
}

// TestARequestThatIsWithdrawn checks that, of two agents that use a token for one
// cluster at the same time, one gets a certificate, and the other an error at
// once.
func TestARequestThatIsWithdrawn(t *testing.T) {
	const resource = "certificatesigningrequests"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			_, _ = io.WriteString(w, "{}")
			return
		}
		status := apierrors.NewNotFound(schema.GroupResource{Group: "certificates.k8s.io", Resource: resource}, path.Base(r.URL.Path)).Status()
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(status)
	}))
	defer server.Close()
	_, err := registration.Request(t.Context(), &rest.Config{Host: server.URL}, registration.Options{Cluster: "east", Timeout: time.Minute})
	if !errors.Is(err, registration.ErrToken) || !strings.Contains(err.Error(), "at the same time") {
		t.Errorf("error %v, want one that says who has it", err)
	}
}
