package members_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

// edge is a member with one ConfigMap, that accepts one token.
type edge struct {
	server *httptest.Server

	mu     sync.Mutex
	token  string
	lists  int
	events chan string // to the watch that was opened last
	opened []string    // the tokens that watches were opened with
}

func newEdge(t *testing.T) *edge {
	t.Helper()
	e := &edge{token: "first"}
	mux := http.NewServeMux()
	say := func(path, text string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, text)
		})
	}
	say("/api/v1", `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"configmaps","namespaced":true,"kind":"ConfigMap"}]}`)
	say("/api/v1/namespaces/kube-system", `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"ours"}}`)
	mux.HandleFunc("/api/v1/configmaps", e.configMaps)
	e.server = serve(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		known := r.Header.Get("Authorization") == "Bearer "+e.token
		e.mu.Unlock()
		if !known {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	return e
}

// serve starts a server that ends with the test. A registry comes back for its watches
// until it ends itself, later than the server perhaps: what is asked once the test is
// over ends at once, so that nothing is waited for.
func serve(t *testing.T, secure bool, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.BaseContext = func(net.Listener) context.Context { return t.Context() }
	server.EnableHTTP2 = secure
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// show sends an event to the watch that was opened last.
func (e *edge) show(event string) {
	e.mu.Lock()
	events := e.events
	e.mu.Unlock()
	events <- event
}

func (e *edge) configMaps(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch query := r.URL.Query(); {
	case query.Get("sendInitialEvents") == "true":
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`, http.StatusUnprocessableEntity)
	case query.Get("watch") != "true":
		e.mu.Lock()
		e.lists++
		e.mu.Unlock()
		_, _ = fmt.Fprint(w, listText("5", configMapText("one", "4", "")))
	default:
		w.(http.Flusher).Flush()
		events := make(chan string) // its own: the one before may not have noticed yet that it is over
		e.mu.Lock()
		e.events = events
		e.opened = append(e.opened, r.Header.Get("Authorization")+" from "+query.Get("resourceVersion"))
		e.mu.Unlock()
		for {
			select {
			case <-r.Context().Done():
				return
			case event := <-events:
				_, _ = fmt.Fprint(w, event+"\n")
				w.(http.Flusher).Flush()
			}
		}
	}
}

// registered returns the Cluster of the edge, and the Secret with a token.
func (e *edge) registered(token string) (*clusterv1alpha1.Cluster, *corev1.Secret) {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.server.Certificate().Raw})
	return &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Spec: clusterv1alpha1.ClusterSpec{ID: "ours", APIEndpoint: e.server.URL},
		}, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "edge"},
			Data:       map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte(token), clusterv1alpha1.SecretCADataKey: ca},
		}
}

func connectTo(t *testing.T, r *members.Registry, c *clusterv1alpha1.Cluster, secret *corev1.Secret) *members.Member {
	t.Helper()
	target, err := members.TargetOf(c, secret)
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Connect(target)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A token that is replaced costs no list, no moment in which the member is out of
// sight, and no event. The watch goes on with the new one.
func TestATokenIsReplacedWithoutAGap(t *testing.T) {
	e := newEdge(t)
	reported := &log{}
	r := start(t, members.New(members.Options{Interpreter: interpreter.Native()}), reported)
	cluster, secret := e.registered("first")
	m := connectTo(t, r, cluster, secret)
	if err := m.Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	one := types.NamespacedName{Namespace: "shop", Name: "one"}
	m.Read(configMap, one)
	watched := func(n int) {
		t.Helper()
		eventually(t, "the watch is open", func() error {
			e.mu.Lock()
			defer e.mu.Unlock()
			if len(e.opened) < n {
				return fmt.Errorf("%d watches", len(e.opened))
			}
			return nil
		})
	}
	version := func(want string) {
		t.Helper()
		eventually(t, "the event is seen", func() error {
			if observed, presence := m.Read(configMap, one); presence != members.Present || observed.ResourceVersion != want {
				return fmt.Errorf("presence %v", presence)
			}
			return nil
		})
	}
	watched(1)
	e.show(`{"type":"MODIFIED","object":` + configMapText("one", "6", `,"data":{"a":"a"}`) + "}")
	version("6")

	e.mu.Lock()
	e.token = "second"
	e.mu.Unlock()
	secret.Data[clusterv1alpha1.SecretTokenKey] = []byte("second")
	if connectTo(t, r, cluster, secret) != m {
		t.Error("another token makes another connection")
	}
	if _, ok := r.Get("edge"); !ok {
		t.Error("the member is not trusted for its new token")
	}
	if _, presence := m.Read(configMap, one); presence != members.Present {
		t.Errorf("presence %v while the token is replaced", presence)
	}
	watched(2)
	e.show(`{"type":"MODIFIED","object":` + configMapText("one", "7", `,"data":{"a":"b"}`) + "}")
	version("7")
	if err := m.Prove(t.Context()); err != nil {
		t.Errorf("the new token is not sent: %v", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if diff := cmp.Diff([]string{"Bearer first from 5", "Bearer second from 6"}, e.opened); diff != "" || e.lists != 1 {
		t.Errorf("%d lists; watches (-want +got):\n%s", e.lists, diff)
	}
}

// With other certificates or another proxy a member has to prove itself before
// anything is written to it; what is known of it stays.
func TestAnotherCAHasTheMemberProveItself(t *testing.T) {
	e := newEdge(t)
	r := start(t, members.New(members.Options{Interpreter: interpreter.Native()}), &log{})
	cluster, secret := e.registered("first")
	right := secret.Data[clusterv1alpha1.SecretCADataKey]
	m := connectTo(t, r, cluster, secret)
	if err := m.Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	secret.Data[clusterv1alpha1.SecretCADataKey] = otherCA(t)
	connectTo(t, r, cluster, secret)
	if _, ok := r.Get("edge"); ok {
		t.Error("the member is trusted before it proved itself")
	}
	if err := m.Prove(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("Prove = %v, want an error about the certificate", err)
	}
	secret.Data[clusterv1alpha1.SecretCADataKey] = []byte("no certificate")
	target, err := members.TargetOf(cluster, secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Connect(target); err == nil {
		t.Error("a CA that is none is taken")
	}
	secret.Data[clusterv1alpha1.SecretCADataKey] = right
	if connectTo(t, r, cluster, secret) != m || m.Prove(t.Context()) != nil {
		t.Error("the right CA does not bring the member back")
	}
	cluster.Annotations = map[string]string{clusterv1alpha1.TLSServerNameAnnotation: "example.com"} // as httptest's certificate has it
	connectTo(t, r, cluster, secret)
	if err := m.Prove(t.Context()); err != nil {
		t.Errorf("the member's own name is not accepted: %v", err)
	}
	cluster.Annotations[clusterv1alpha1.TLSServerNameAnnotation] = "elsewhere.example.org"
	connectTo(t, r, cluster, secret)
	if err := m.Prove(t.Context()); err == nil {
		t.Error("another name than the certificate's is accepted")
	}
}

// otherCA returns a CA that has signed nothing.
func otherCA(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "another"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// tunnel is a proxy that counts who it was asked for.
type tunnel struct {
	mu      sync.Mutex
	targets []string
	headers http.Header
}

func (p *tunnel) pass(client net.Conn, target string) {
	p.mu.Lock()
	p.targets = append(p.targets, target)
	p.mu.Unlock()
	server, err := (&net.Dialer{}).Dial("tcp", target)
	if err != nil {
		_ = client.Close()
		return
	}
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
	_ = client.Close()
}

// connectProxy serves CONNECT, for those who send the header.
func (p *tunnel) connectProxy(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Header.Get("X-Site") == "" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		p.mu.Lock()
		p.headers = r.Header.Clone()
		p.mu.Unlock()
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		p.pass(client, r.Host)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// socksProxy serves SOCKS 5 without logging in, for IPv4 addresses.
func (p *tunnel) socksProxy(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				in := bufio.NewReader(client)
				greeting := make([]byte, 3) // version, one method, "none"
				if _, err := io.ReadFull(in, greeting); err != nil {
					return
				}
				_, _ = client.Write([]byte{5, 0})
				request := make([]byte, 10) // version, connect, 0, IPv4, address, port
				if _, err := io.ReadFull(in, request); err != nil || request[3] != 1 {
					_ = client.Close()
					return
				}
				_, _ = client.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
				p.pass(client, fmt.Sprintf("%s:%d", net.IP(request[4:8]), int(request[8])<<8|int(request[9])))
			}()
		}
	}()
	return "socks5://" + listener.Addr().String()
}

func TestMembersAreReachedThroughProxies(t *testing.T) {
	cases := map[string]struct {
		proxy   func(*tunnel, *testing.T) string
		headers map[string]string
		sent    []string // of X-Site
		fails   bool
	}{
		"CONNECT, with headers of one and more values": {
			(*tunnel).connectProxy, map[string]string{"X-Site": "a, b"}, []string{"a", "b"}, false,
		},
		"CONNECT that refuses us": {(*tunnel).connectProxy, nil, nil, true},
		"SOCKS 5":                 {(*tunnel).socksProxy, nil, nil, false},
		"nobody":                  {func(*tunnel, *testing.T) string { return "http://127.0.0.1:1" }, nil, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, p := newEdge(t), &tunnel{}
			cluster, secret := e.registered("first")
			cluster.Spec.ProxyURL, cluster.Spec.ProxyHeader = tc.proxy(p, t), tc.headers
			r := start(t, members.New(members.Options{Interpreter: interpreter.Native()}), &log{})
			m := connectTo(t, r, cluster, secret)
			err := m.Prove(t.Context())
			if tc.fails {
				if err == nil || errors.Is(err, members.ErrOtherCluster) {
					t.Errorf("Prove = %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if diff := cmp.Diff([]string{strings.TrimPrefix(e.server.URL, "https://")}, p.targets); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.sent, p.headers.Values("X-Site")); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

// Another way may lead to another cluster. Who has answered by the one before has
// proved nothing for it.
func TestAProofByTheWayBeforeDoesNotCount(t *testing.T) {
	var change func()
	asked := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		id := "ours"
		if asked == 1 {
			change()
		} else {
			id = "theirs"
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, id)
	}))
	defer server.Close()
	r := start(t, members.New(members.Options{Interpreter: interpreter.Native()}), &log{})
	cluster, secret := (&edge{server: server}).registered("first")
	m := connectTo(t, r, cluster, secret)
	change = func() {
		cluster.Spec.InsecureSkipTLSVerification = true
		connectTo(t, r, cluster, secret)
	}
	if err := m.Prove(t.Context()); !errors.Is(err, members.ErrOtherCluster) {
		t.Errorf("proved with %v, want %v", err, members.ErrOtherCluster)
	}
	if m.Proven() {
		t.Error("another cluster is trusted")
	}
}

// A member that is restored from an earlier time takes its versions up again from
// there, and shows nothing to a watch from a later one. What it has lost must not
// count as there until it has caught up.
func TestAMemberThatIsRestoredIsReadAnew(t *testing.T) {
	var mu sync.Mutex
	restored, faults := false, 0
	end, watched := make(chan struct{}), make(chan struct{})
	opened := sync.OnceFunc(func() { close(watched) })
	mux := http.NewServeMux()
	say := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, text)
	}
	mux.HandleFunc("/api/v1", func(w http.ResponseWriter, _ *http.Request) {
		say(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"configmaps","namespaced":true,"kind":"ConfigMap"}]}`)
	})
	mux.HandleFunc("/api/v1/configmaps", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch query := r.URL.Query(); {
		case query.Get("sendInitialEvents") == "true":
			w.WriteHeader(http.StatusUnprocessableEntity)
			say(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		case query.Get("watch") != "true" && restored:
			say(w, listText("50", configMapText("one", "40", "")))
		case query.Get("watch") != "true":
			say(w, listText("100", configMapText("one", "40", ""), configMapText("two", "90", "")))
		case restored && faults == 0:
			faults++
			w.WriteHeader(http.StatusTooManyRequests) // as a refused connection, it has the watch go on where it was
			say(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`)
		default:
			if !restored { // one that shows something is taken up again, not begun anew
				say(w, `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"100"}}}`+"\n")
			}
			w.(http.Flusher).Flush()
			over := end
			mu.Unlock()
			opened()
			select {
			case <-over:
			case <-r.Context().Done():
			}
			mu.Lock()
		}
	})
	server := serve(t, true, mux)
	r := start(t, members.New(members.Options{Interpreter: interpreter.Native()}), &log{})
	cluster, secret := (&edge{server: server}).registered("first")
	m := connectTo(t, r, cluster, secret)
	two := types.NamespacedName{Namespace: "shop", Name: "two"}
	is := func(want members.Presence) {
		t.Helper()
		eventually(t, "what is known of the member is true", func() error {
			if _, presence := m.Read(configMap, two); presence != want {
				return fmt.Errorf("presence %v, want %v", presence, want)
			}
			return nil
		})
	}
	is(members.Present)
	<-watched
	mu.Lock()
	restored = true
	close(end)
	end = make(chan struct{})
	mu.Unlock()
	is(members.Absent)
}
