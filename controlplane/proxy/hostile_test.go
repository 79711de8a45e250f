package proxy

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

const (
	ownToken    = "CANARY-own"
	personToken = "CANARY-impersonator"
	userToken   = "CANARY-user"
)

// stage is a hub with a proxy, and what it knows.
type stage struct {
	proxy *Proxy
	clock *testingclock.FakeClock
	front *httptest.Server

	mu       sync.Mutex
	clusters map[string]*clusterv1alpha1.Cluster
	secrets  map[string]*corev1.Secret
	reads    int // of secrets
}

// asks is the header by which a test says who asks: a name, then groups.
const asks = "X-Test-User"

func newStage(t *testing.T, change ...func(*Options)) *stage {
	t.Helper()
	s := &stage{
		clock:    testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		clusters: map[string]*clusterv1alpha1.Cluster{}, secrets: map[string]*corev1.Secret{},
	}
	o := Options{
		Cluster: s.cluster, Clusters: s.names, Secret: s.secret, Clock: s.clock, AllowLoopback: true,
		Work: func(context.Context, string, string) (*workv1alpha1.Work, error) {
			return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
		},
		Hub: func() *rest.Config { return &rest.Config{} },
		May: func(_ context.Context, who user.Info, verb, cluster string) (bool, error) {
			return who.GetName() != "reader" && verb == "create" && cluster != "", nil
		},
	}
	for _, c := range change {
		c(&o)
	}
	s.proxy = New(o)
	t.Cleanup(s.proxy.Close)
	s.front = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.front.Close)
	return s
}

func (s *stage) cluster(_ context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.clusters[name]; ok {
		return c.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(clusterv1alpha1.Resource("clusters"), name)
}

func (s *stage) names(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for name := range s.clusters {
		out = append(out, name)
	}
	return out, nil
}

func (s *stage) secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if c, ok := s.secrets[name]; ok {
		return c.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
}

// serve is the hub's API server, as far as the proxy sees it.
func (s *stage) serve(w http.ResponseWriter, req *http.Request) {
	ctx := req.Context()
	if who := strings.Split(req.Header.Get(asks), ","); who[0] != "" {
		ctx = genericapirequest.WithUser(ctx, &user.DefaultInfo{Name: who[0], Groups: who[1:]})
	}
	req.Header.Del(asks)
	w.Header().Set("Cache-Control", "no-cache, private")
	name, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, clusters), "/")
	handler, err := s.proxy.Storage().Connect(ctx, name, nil, responder{w})
	if err != nil {
		panic(err)
	}
	handler.ServeHTTP(w, Arrive(req.WithContext(ctx)))
}

type responder struct{ w http.ResponseWriter }

func (r responder) Object(int, runtime.Object) {}

func (r responder) Error(err error) {
	var known *apierrors.StatusError
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	r.w.WriteHeader(int(known.ErrStatus.Code))
	_ = json.NewEncoder(r.w).Encode(known.ErrStatus)
}

// member is a server that a test answers for. It is the cluster "uid-NAME".
type member struct {
	*httptest.Server
	mu   sync.Mutex
	id   string
	seen []*http.Request // that are not about identity
}

// join adds a member to the hub.
func (s *stage) join(t *testing.T, name string, answer http.HandlerFunc) *member {
	t.Helper()
	m := &member{id: "uid-" + name}
	m.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if req.URL.Path == identityPath && req.Header.Get("Impersonate-User") == "" {
			m.identify(w, req)
			return
		}
		m.seen = append(m.seen, req.Clone(context.WithoutCancel(t.Context())))
		m.mu.Unlock()
		defer m.mu.Lock()
		answer(w, req)
	}))
	m.Config.ErrorLog = nil
	m.EnableHTTP2 = true
	m.StartTLS()
	t.Cleanup(m.Close)
	t.Cleanup(m.CloseClientConnections)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clusters[name] = &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("cluster-" + name)},
		Spec: clusterv1alpha1.ClusterSpec{
			ID: m.id, SyncMode: clusterv1alpha1.Push, APIEndpoint: m.URL,
			SecretRef:             &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: name},
			ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: name + "-impersonator"},
		},
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.Certificate().Raw})
	s.secrets[name] = &corev1.Secret{Data: map[string][]byte{"token": []byte(ownToken), "caBundle": ca}}
	s.secrets[name+"-impersonator"] = &corev1.Secret{Data: map[string][]byte{"token": []byte(personToken)}}
	return m
}

// identify says who the member is to whom it knows. mu is held.
func (m *member) identify(w http.ResponseWriter, req *http.Request) {
	if req.Header.Get("Authorization") != "Bearer "+personToken {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	_, _ = fmt.Fprintf(w, `{"metadata":{"name":"kube-system","uid":%q}}`, m.id)
}

func (m *member) requests() []*http.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.seen)
}

// change edits a Cluster.
func (s *stage) change(name string, edit func(*clusterv1alpha1.Cluster)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit(s.clusters[name])
}

// reply is what a caller of the hub gets.
type reply struct {
	Code    int
	Message string // of a Status, or the body
}

// get asks the hub for a path of a cluster, as alice.
func (s *stage) get(t *testing.T, cluster, path string, header http.Header) reply {
	t.Helper()
	return s.send(t, http.MethodGet, cluster, path, header)
}

func (s *stage) send(t *testing.T, method, cluster, path string, header http.Header) reply {
	t.Helper()
	u, err := url.Parse(s.front.URL)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer %s\r\n", method, prefix(cluster)+path, userToken)
	if header.Get(asks) == "" {
		fmt.Fprintf(&text, "%s: alice,dev\r\n", asks)
	}
	if header.Get("Connection") == "" {
		text.WriteString("Connection: close\r\n")
	}
	_ = header.Write(&text)
	text.WriteString("\r\n")
	if _, err := io.WriteString(conn, text.String()); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return reply{Code: resp.StatusCode, Message: resp.Header.Get("Upgrade")}
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{Code: resp.StatusCode, Message: err.Error()}
	}
	var reported metav1.Status
	if json.Unmarshal(body, &reported) == nil && reported.Message != "" {
		return reply{Code: resp.StatusCode, Message: reported.Message}
	}
	return reply{Code: resp.StatusCode, Message: string(body)}
}

// check compares, and finds secrets.
func check(t *testing.T, got reply, code int, says string) {
	t.Helper()
	if got.Code != code || !strings.Contains(got.Message, says) {
		t.Errorf("got %d %q, want %d %q", got.Code, got.Message, code, says)
	}
	if strings.Contains(got.Message, "CANARY") {
		t.Errorf("a secret is told: %q", got.Message)
	}
}

func fine(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }

// A member hears who asks from the hub alone.
func TestHeaders(t *testing.T) {
	s := newStage(t)
	m := s.join(t, "a", func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range []string{"Set-Cookie", "Location", "Www-Authenticate", "Strict-Transport-Security", "Access-Control-Allow-Origin", "Cache-Control"} {
			w.Header().Set(name, "x")
		}
		w.Header().Set("Warning", `299 - "kept"`)
	})
	got := s.get(t, "a", "/api/v1/pods?watch=false&dryRun=All", http.Header{
		asks:                       {"alice,dev,system:masters,system:authenticated,flotilla:masters,system:nodes,system:serviceaccounts"},
		"Impersonate-User":         {"root"},
		"Impersonate-Group":        {"system:masters"},
		"impersonate-extra-scopes": {"x"},
		"Impersonate-Uid":          {"0"},
		"X-Remote-User":            {"root"},
		"X-Forwarded-For":          {"1.2.3.4"},
		"Cookie":                   {"a=b"},
		"Proxy-Authorization":      {"Basic x"},
		"Connection":               {"close, Accept, X-Secret"},
		"X-Secret":                 {"x"},
		"X-Kept":                   {"y"},
		"Sec-Websocket-Protocol":   {"base64url.bearer.authorization.k8s.io.Q0FOQVJZ, v5.channel.k8s.io"},
	})
	check(t, got, http.StatusOK, "")
	seen := m.requests()
	if len(seen) != 1 {
		t.Fatalf("%d requests", len(seen))
	}
	want := http.Header{
		"Authorization": {"Bearer " + personToken}, "Impersonate-User": {"alice"}, "Impersonate-Group": {"dev", clusterv1alpha1.GroupMasters},
		"X-Kept": {"y"}, "Sec-Websocket-Protocol": {"v5.channel.k8s.io"}, "User-Agent": {""},
	}
	if seen[0].Header.Get("User-Agent") == "" {
		delete(want, "User-Agent")
	}
	if diff := cmp.Diff(want, seen[0].Header); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if seen[0].URL.RawQuery != "watch=false&dryRun=All" || seen[0].Host != strings.TrimPrefix(m.URL, "https://") {
		t.Errorf("%s at %s", seen[0].URL.RawQuery, seen[0].Host)
	}
	resp, err := s.front.Client().Do(request(t, s.front.URL+prefix("a")+"/api"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	resp.Header.Del("Date")
	if diff := cmp.Diff(http.Header{"Cache-Control": {"no-cache, private"}, "Warning": {`299 - "kept"`}, "Content-Length": {"0"}}, resp.Header); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func request(t *testing.T, at string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(asks, "alice")
	return req
}

func TestPathsThatAreRefused(t *testing.T) {
	s := newStage(t)
	m := s.join(t, "a", fine)
	for path, says := range map[string]string{
		"/api/../apis":                    `element ".."`,
		"/./api":                          `element "."`,
		"/..":                             `element ".."`,
		"//api":                           "empty element",
		"/api//v1":                        "empty element",
		"/api/%2e%2e/x":                   "encoded dot",
		"/api%2fv1":                       "encoded slash",
		"/api%2Fv1":                       "encoded slash",
		"/api/v1/namespaces/a%5c..%5cb":   "a backslash",
		`/api\v1`:                         "a backslash",
		"/api/%00":                        "a NUL",
		"/api/%252e%252e/x":               "encoded percent sign",
		"%2f..%2fb/proxy/api":             "must begin with a slash",
		"/api/v1/proxy/../../../b/proxy/": `element ".."`,
	} {
		check(t, s.get(t, "a", path, http.Header{}), http.StatusBadRequest, says)
	}
	for _, path := range []string{"", "/", "/api/", "/api/v1/namespaces/a%20b", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"} {
		check(t, s.get(t, "a", path, http.Header{}), http.StatusOK, "fine")
	}
	if seen := m.requests(); len(seen) != 5 {
		t.Errorf("%d requests passed, want 5", len(seen))
	}
}

func TestCallersThatAreRefused(t *testing.T) {
	s := newStage(t)
	m := s.join(t, "a", fine)
	for _, who := range []string{",x", "system:anonymous", "system:node:n1", "system:kube-scheduler", "alice,a\tb"} {
		check(t, s.get(t, "a", "/api", http.Header{asks: {who}}), http.StatusForbidden, "cluster a: ")
	}
	if seen := m.requests(); len(seen) != 0 {
		t.Errorf("%d requests passed", len(seen))
	}
}

func TestAnswersThatAreRefused(t *testing.T) {
	upgrade := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		header http.Header
		code   int
		says   string
	}{
		"a redirect": {
			answer: func(w http.ResponseWriter, req *http.Request) {
				http.Redirect(w, req, "https://elsewhere.example.org/", http.StatusTemporaryRedirect)
			}, code: http.StatusBadGateway, says: "cluster a: it answers with a redirect",
		},
		"a redirect of an upgrade": {
			answer: func(w http.ResponseWriter, req *http.Request) {
				http.Redirect(w, req, "https://169.254.169.254/", http.StatusFound)
			}, header: upgrade, code: http.StatusBadGateway, says: "a redirect",
		},
		"that nobody may know": {
			answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
			code:   http.StatusBadGateway, says: "does not accept the impersonator's token of secret karmada-cluster/a-impersonator",
		},
		"another protocol than was asked for": {
			answer: switched("SPDY/3.1"), header: upgrade, code: http.StatusBadGateway, says: "a protocol that was not asked for",
		},
		"headers without end": {
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Big", strings.Repeat("x", mostHeaders+1))
			}, code: http.StatusBadGateway, says: "cluster a: ",
		},
		"a protocol that was asked for": {answer: switched("websocket"), header: upgrade, code: http.StatusSwitchingProtocols, says: "websocket"},
		"what has not changed": {
			answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, code: http.StatusNotModified,
		},
		"that the caller may not": {
			answer: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }, code: http.StatusForbidden, says: "no",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.join(t, "a", test.answer)
			check(t, s.get(t, "a", "/api", test.header), test.code, test.says)
		})
	}
}

// switched answers that the protocol is another from now on.
func switched(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = fmt.Fprintf(buffered, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", to)
		_ = buffered.Flush()
	}
}

func TestUpgradesThatAreRefused(t *testing.T) {
	s := newStage(t)
	m := s.join(t, "a", fine)
	for _, to := range []string{"h2c", "TLS/1.0", "websocket, h2c", "", "SPDY/2"} {
		header := http.Header{"Connection": {"keep-alive, Upgrade, close"}}
		if to != "" {
			header.Set("Upgrade", to)
		}
		check(t, s.get(t, "a", "/api", header), http.StatusBadRequest, "only connections that become SPDY/3.1 or websocket")
	}
	for cluster, protocol := range map[string]string{"a": "websocket", "*": "SPDY/3.1"} {
		header := http.Header{"Connection": {"Upgrade"}, "Upgrade": {protocol}, asks: {"reader"}}
		check(t, s.get(t, cluster, "/api/v1/namespaces/shop/pods/web/exec", header), http.StatusForbidden,
			`clusters.cluster.karmada.io "`+cluster+`" is forbidden: User "reader" cannot create resource "clusters/proxy" in API group "cluster.karmada.io" at the cluster scope, which `+protocol+` takes`)
	}
	if seen := m.requests(); len(seen) != 0 {
		t.Errorf("%d requests passed", len(seen))
	}
}

func TestAddressesThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		endpoint string
		loopback bool
		says     string
	}{
		"where machines get credentials": {endpoint: "https://169.254.169.254", loopback: true, says: "link-local or reserved"},
		"the same, mapped":               {endpoint: "https://[::ffff:169.254.169.254]:443", loopback: true, says: "link-local or reserved"},
		"no address":                     {endpoint: "https://0.0.0.0:6443", loopback: true, says: "link-local or reserved"},
		"the hub's machine":              {endpoint: "https://127.0.0.1:1", says: "--allow-loopback-clusters"},
		"the hub's machine, by name":     {endpoint: "https://localhost:1", says: "--allow-loopback-clusters"},
		"no TLS":                         {endpoint: "http://10.0.0.1", says: "must start with https://"},
		"with a password":                {endpoint: "https://a:CANARY@10.0.0.1", says: "holds a user name"},
		"with parameters":                {endpoint: "https://10.0.0.1?a=b", says: "not the address of a cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, func(o *Options) { o.AllowLoopback = test.loopback })
			s.join(t, "a", fine)
			s.change("a", func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = test.endpoint })
			got := s.get(t, "a", "/api", http.Header{})
			check(t, got, got.Code, test.says)
			if got.Code != http.StatusBadGateway && got.Code != http.StatusServiceUnavailable {
				t.Errorf("code %d", got.Code)
			}
		})
	}
}

// What answers at a cluster's address must be the cluster before it hears of a
// request.
func TestIdentity(t *testing.T) {
	s := newStage(t)
	m := s.join(t, "a", fine)
	check(t, s.get(t, "a", "/api", http.Header{}), http.StatusOK, "fine")

	m.mu.Lock()
	m.id = "another"
	m.mu.Unlock()
	s.clock.Step(provenFor)
	check(t, s.get(t, "a", "/api", http.Header{}), http.StatusBadGateway, "another cluster answers at its address: it was registered as uid-a and answers as another")
	if seen := m.requests(); len(seen) != 1 {
		t.Errorf("%d requests passed, want the first alone", len(seen))
	}
	m.mu.Lock()
	m.id = "uid-a"
	m.mu.Unlock()
	check(t, s.get(t, "a", "/api", http.Header{}), http.StatusBadGateway, "another cluster") // not asked again at once
	s.clock.Step(refutedFor)
	check(t, s.get(t, "a", "/api", http.Header{}), http.StatusOK, "fine")

	m.mu.Lock()
	m.id = "another"
	m.mu.Unlock()
	s.change("a", func(c *clusterv1alpha1.Cluster) { c.Spec.ID = "another" }) // joined anew
	check(t, s.get(t, "a", "/api", http.Header{}), http.StatusOK, "fine")
}

// Credentials go only where the certificate is one of the cluster's.
func TestAnotherCA(t *testing.T) {
	s := newStage(t)
	m := s.join(t, "a", fine)
	check(t, s.get(t, "a", "/api", http.Header{}), http.StatusOK, "fine")
	thief := s.join(t, "b", fine)
	s.mu.Lock()
	s.clusters["a"].Spec.APIEndpoint = thief.URL
	s.secrets["a"].Data["caBundle"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: foreignCA(t)})
	s.mu.Unlock()
	s.clock.Step(fresh + 1)
	check(t, s.get(t, "a", "/api", http.Header{}), http.StatusBadGateway, "its certificate is not one of the cluster that was registered")
	if seen := append(m.requests(), thief.requests()...); len(seen) != 1 {
		t.Errorf("%d requests passed, want the first alone", len(seen))
	}
	s.mu.Lock()
	s.secrets["a"].Data["caBundle"] = []byte("no certificate")
	s.mu.Unlock()
	s.clock.Step(fresh + 1)
	check(t, s.get(t, "a", "/api", http.Header{}), http.StatusServiceUnavailable, "check caBundle in secret karmada-cluster/a")
}

// foreignCA is a certificate that signed none of the members'.
func foreignCA(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// The token that the hub acts with itself carries no request of a user, and none
// at all where the certificate is not checked.
func TestOwnToken(t *testing.T) {
	s := newStage(t)
	m := s.join(t, "a", fine)
	var heard []string
	m.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		heard = append(heard, req.URL.Path+" "+req.Header.Get("Authorization"))
		if req.URL.Path == identityPath && req.Header.Get("Authorization") == "Bearer "+ownToken {
			_, _ = io.WriteString(w, `{"metadata":{"uid":"uid-a"}}`)
			return
		}
		if req.URL.Path == identityPath {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, "fine")
	})
	check(t, s.get(t, "a", "/api", http.Header{}), http.StatusOK, "fine")
	s.change("a", func(c *clusterv1alpha1.Cluster) { c.Spec.InsecureSkipTLSVerification = true })
	check(t, s.get(t, "a", "/api", http.Header{}), http.StatusBadGateway, "it does not say who it is")
	want := []string{
		identityPath + " ", identityPath + " Bearer " + personToken, identityPath + " Bearer " + ownToken, "/api Bearer " + personToken,
		identityPath + " ", identityPath + " Bearer " + personToken,
	}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A token that was replaced counts as soon as the old one is refused, and Secrets
// are not read for each request.
func TestRotation(t *testing.T) {
	s := newStage(t)
	token := personToken
	m := s.join(t, "a", func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	for range 20 {
		check(t, s.get(t, "a", "/api", http.Header{}), http.StatusOK, "")
	}
	s.mu.Lock()
	if s.reads != 2 {
		t.Errorf("%d reads of secrets for 20 requests, want 2", s.reads)
	}
	s.secrets["a-impersonator"].Data["token"] = []byte("CANARY-next")
	s.mu.Unlock()
	m.mu.Lock()
	token = "CANARY-next"
	m.mu.Unlock()
	check(t, s.get(t, "a", "/api", http.Header{}), http.StatusBadGateway, "does not accept the impersonator's token")
	m.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer CANARY-next" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"metadata":{"uid":"uid-a"}}`)
	})
	check(t, s.get(t, "a", "/api", http.Header{}), http.StatusOK, "uid-a")
}

func TestClustersThatCannotBeReached(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*clusterv1alpha1.Cluster)
		code int
		says string
	}{
		"pull mode without an endpoint": {
			edit: func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode, c.Spec.APIEndpoint = clusterv1alpha1.Pull, "" },
			code: http.StatusServiceUnavailable, says: "cluster a: it is in pull mode and reports no endpoint",
		},
		"pull mode without secrets": {
			edit: func(c *clusterv1alpha1.Cluster) {
				c.Spec.SyncMode, c.Spec.ImpersonatorSecretRef = clusterv1alpha1.Pull, nil
			},
			code: http.StatusServiceUnavailable, says: "--report-secrets",
		},
		"no impersonator": {
			edit: func(c *clusterv1alpha1.Cluster) { c.Spec.ImpersonatorSecretRef = nil },
			code: http.StatusServiceUnavailable, says: "join it again",
		},
		"its secret is gone": {
			edit: func(c *clusterv1alpha1.Cluster) { c.Spec.ImpersonatorSecretRef.Name = "gone" },
			code: http.StatusServiceUnavailable, says: "secret karmada-cluster/gone does not exist",
		},
		"nobody is there": {
			edit: func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = "https://127.0.0.1:1" },
			code: http.StatusServiceUnavailable, says: "cluster a: it cannot be reached",
		},
		"its proxy is not there": {
			edit: func(c *clusterv1alpha1.Cluster) { c.Spec.ProxyURL = "http://user:CANARY@127.0.0.1:1" },
			code: http.StatusServiceUnavailable, says: "cluster a: it cannot be reached",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.join(t, "a", fine)
			s.change("a", test.edit)
			check(t, s.get(t, "a", "/api", http.Header{}), test.code, test.says)
		})
	}
	check(t, newStage(t).get(t, "gone", "/api", http.Header{}), http.StatusNotFound, `clusters.cluster.karmada.io "gone" not found`)
}

// A request under way ends when its cluster goes.
func TestTheEndOfACluster(t *testing.T) {
	s := newStage(t)
	under, ended := make(chan struct{}), make(chan struct{})
	s.join(t, "a", func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		close(under)
		<-req.Context().Done()
		close(ended)
	})
	resp, err := s.front.Client().Do(request(t, s.front.URL+prefix("a")+"/api?watch=true"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	<-under
	s.proxy.sweep(t.Context())
	select {
	case <-ended:
		t.Fatal("a watch ended although nothing has changed")
	default:
	}
	s.mu.Lock()
	delete(s.clusters, "a")
	s.mu.Unlock()
	s.proxy.sweep(t.Context())
	<-ended
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("a watch that was cut off looks whole")
	}
	if left := len(s.proxy.known()); left != 0 {
		t.Errorf("%d clusters are remembered", left)
	}
}

// What nobody uses is forgotten.
func TestIdleClusters(t *testing.T) {
	s := newStage(t)
	s.join(t, "a", fine)
	check(t, s.get(t, "a", "/api", http.Header{}), http.StatusOK, "fine")
	s.proxy.sweep(t.Context())
	if left := len(s.proxy.known()); left != 1 {
		t.Errorf("%d clusters are remembered, want 1", left)
	}
	for len(s.proxy.known()) > 0 { // the request may not have ended yet for the hub
		s.clock.Step(forgetAfter + 1)
		s.proxy.sweep(t.Context())
		if t.Context().Err() != nil {
			t.Fatal("what nobody uses is remembered")
		}
	}
	s.proxy.Close()
	check(t, s.get(t, "a", "/api", http.Header{}), http.StatusServiceUnavailable, "is stopping")
}

// All clusters are asked at once.
func TestEverywhere(t *testing.T) {
	list := func(names ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			for _, name := range names {
				if strings.HasSuffix(req.URL.Path, "/pods/"+name) {
					_, _ = io.WriteString(w, "object "+name)
					return
				}
			}
			if !strings.HasSuffix(req.URL.Path, "/pods") || req.URL.Query().Has("limit") {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			var items []string
			for _, name := range names {
				items = append(items, fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
			}
			_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[%s]}`, strings.Join(items, ","))
		}
	}
	s := newStage(t)
	s.join(t, "a", list("x", "both"))
	s.join(t, "b", list("y", "both"))
	s.join(t, "c", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	const pods = "/api/v1/namespaces/shop/pods"
	item := func(cluster, name string) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{"resource.karmada.io/query-from-cluster":%q},"name":%q}}`, cluster, name)
	}
	for _, test := range []struct {
		method, path string
		want         reply
	}{
		{"GET", pods + "?limit=1", reply{200, `{"apiVersion":"v1","items":[` + strings.Join([]string{item("a", "x"), item("a", "both"), item("b", "y"), item("b", "both")}, ",") + `],"kind":"PodList","metadata":{}}`}},
		{"GET", pods + "/y", reply{200, "object y"}},
		{"GET", pods + "/z", reply{404, `pods "z" not found`}},
		{"GET", pods + "/both", reply{409, `Operation cannot be fulfilled on pods "both": conflict resource, exist in more than one cluster: a, b; name one of them`}},
		{"GET", pods + "?watch=true", reply{405, "watch in all clusters at once is not supported on resources of kind \"pods\""}},
		{"POST", pods, reply{405, "create in all clusters at once is not supported on resources of kind \"pods\""}},
		{"DELETE", pods, reply{405, "deletecollection in all clusters at once is not supported on resources of kind \"pods\""}},
		{"DELETE", "/version", reply{405, "cluster *: what is no resource can only be read in all clusters at once"}},
	} {
		if diff := cmp.Diff(test.want, s.send(t, test.method, "*", test.path, http.Header{})); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", test.method, test.path, diff)
		}
	}
}

// A member that does not answer delays its own requests alone, and all of them
// hear at once that it is not there.
func TestASlowMember(t *testing.T) {
	s := newStage(t)
	release := make(chan struct{})
	slow := s.join(t, "slow", fine)
	slow.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		select {
		case <-release:
		case <-req.Context().Done():
		}
	})
	s.join(t, "a", fine)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			got := s.get(t, "slow", "/api", http.Header{})
			check(t, got, http.StatusBadGateway, "cluster slow: ")
		})
	}
	for range 50 {
		check(t, s.get(t, "a", "/api", http.Header{}), http.StatusOK, "fine")
	}
	close(release)
	group.Wait()
}

// Who leaves does not wait for a member that does not answer.
func TestWhoLeaves(t *testing.T) {
	s := newStage(t)
	slow := s.join(t, "slow", fine)
	asked, release := make(chan struct{}, 10), make(chan struct{})
	defer close(release)
	slow.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	})
	ctx, leave := context.WithCancel(genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "alice"}))
	ended := make(chan error, 2)
	for range cap(ended) {
		go func() {
			_, err := s.proxy.trip(ctx, "slow", http.Header{})
			ended <- err
		}()
	}
	<-asked
	leave()
	for range cap(ended) {
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "context canceled") {
			t.Errorf("= %v", err)
		}
	}
}

// What clusters list is not held before it is known to fit, and numbers stay what
// they are.
func TestLargeAnswers(t *testing.T) {
	left := &budget{left: 2000}
	body := strings.NewReader(strings.Repeat("x", 1<<20))
	if _, err := left.read(&http.Response{Body: io.NopCloser(body)}); !errors.Is(err, errTooMuch) || body.Len() < 1<<19 {
		t.Errorf("%v, with %d bytes unread", err, body.Len())
	}
	const item = `{"metadata":{"annotations":{"resource.karmada.io/query-from-cluster":"a"}},"spec":{"bytes":9007199254740993}}`
	if diff := cmp.Diff(item, string(from("a", []byte(`{"metadata":{},"spec":{"bytes":9007199254740993}}`), false))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
