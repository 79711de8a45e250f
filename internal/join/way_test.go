package join_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/join"
)

// canary is a secret that must not be shown.
const canary = "CANARY-secret"

// kubeconfig writes a kubeconfig with one context, and returns its path.
func kubeconfig(t *testing.T, cluster, user string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], " +
		"clusters: [{name: c, cluster: {" + cluster + "}}], users: [{name: u, user: {" + user + "}}]}"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKubeconfigsThatAreRefused(t *testing.T) {
	server, token := "server: 'https://m:6443'", "token: "+canary
	cases := map[string]struct {
		cluster, user string
		allow         join.Allow
		refused       string // part of the message; empty where it is accepted
	}{
		"a token":             {server, token, join.Allow{}, ""},
		"a password":          {server, "username: a, password: " + canary, join.Allow{}, ""},
		"a path":              {"server: 'https://m/k8s/clusters/c-1'", token, join.Allow{}, ""},
		"another name to ask": {server + ", tls-server-name: inner", token, join.Allow{}, ""},
		"a proxy":             {server + ", proxy-url: 'socks5://p:1080'", token, join.Allow{}, ""},
		"a program": {
			server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: get-token, interactiveMode: Never}", join.Allow{}, "--allow-exec",
		},
		"a program that is allowed": {
			server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: get-token, interactiveMode: Never}", join.Allow{Programs: true}, "",
		},
		"an auth provider":              {server, "auth-provider: {name: oidc, config: {id-token: " + canary + "}}", join.Allow{Insecure: true}, "--allow-exec"},
		"no check of certificates":      {server + ", insecure-skip-tls-verify: true", token, join.Allow{Programs: true}, "--allow-insecure-tls"},
		"no check, which is allowed":    {server + ", insecure-skip-tls-verify: true", token, join.Allow{Insecure: true}, ""},
		"no encryption":                 {"server: 'http://m:6443'", token, join.Allow{Insecure: true}, "https://"},
		"a password in the address":     {"server: 'https://a:" + canary + "@m:6443'", token, join.Allow{}, "https://host:port/path"},
		"a query in the address":        {"server: 'https://m:6443?a=" + canary + "'", token, join.Allow{}, "https://host:port/path"},
		"a password of a proxy":         {server + ", proxy-url: 'http://a:" + canary + "@p:3128'", token, join.Allow{}, "proxy-url holds a password"},
		"a CA file that is not there":   {server + ", certificate-authority: missing.pem", token, join.Allow{}, "missing.pem"},
		"no such cluster in the file":   {"", token, join.Allow{}, "kubeconfig"},
		"a proxy of an unknown scheme":  {server + ", proxy-url: 'gopher://p'", token, join.Allow{}, "kubeconfig"},
		"an address that is none":       {"server: 'https://'", token, join.Allow{}, "not the address"},
		"a certificate without its key": {server, "client-certificate-data: aGVsbG8=", join.Allow{}, "kubeconfig"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := join.Load(kubeconfig(t, tc.cluster, tc.user), "", tc.allow)
			if tc.refused == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.refused) {
				t.Fatalf("error = %v, want one about %q", err, tc.refused)
			}
			if strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error tells a secret, or is more than a line: %v", err)
			}
		})
	}
}

// TestAnUnknownContext checks that a context that a file does not have is
// reported with those that it has.
func TestAnUnknownContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "member")
	content := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n" +
		"contexts: [{name: west, context: {cluster: c}}, {name: east, context: {cluster: c}}]\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := join.Load(path, "north", join.Allow{})
	want := `read the cluster's kubeconfig: there is no context "north" in ` + path + ": there are east, west"
	if err == nil || err.Error() != want {
		t.Errorf("Load = %v, want %s", err, want)
	}
}

func TestAKubeconfigWithFilesBesideIt(t *testing.T) {
	var names []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names = append(names, r.TLS.PeerCertificates[0].Subject.CommonName)
		identify(w, r)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	path := kubeconfig(t, "server: '"+server.URL+"', certificate-authority: ca.pem", "client-certificate: pki/me.pem, client-key: pki/me.key")
	certificate, key := self(t, "me")
	for name, content := range map[string][]byte{
		"ca.pem": pemOf("CERTIFICATE", server.Certificate().Raw), "pki/me.pem": certificate, "pki/me.key": key,
	} {
		at := filepath.Join(filepath.Dir(path), name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config, err := join.Load(path, "", join.Allow{})
	if err != nil {
		t.Fatal(err)
	}
	if got := system(t, config); got != "ours" || len(names) == 0 || names[0] != "me" {
		t.Errorf("the cluster is %q, asked by %v", got, names)
	}
}

func TestACAInTheKubeconfig(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(identify))
	defer server.Close()
	ca := base64.StdEncoding.EncodeToString(pemOf("CERTIFICATE", server.Certificate().Raw))
	config, err := join.Load(kubeconfig(t, "server: '"+server.URL+"', certificate-authority-data: "+ca, "token: a"), "", join.Allow{})
	if err != nil {
		t.Fatal(err)
	}
	if got := system(t, config); got != "ours" {
		t.Errorf("the cluster is %q", got)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	asked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer elsewhere.Close()
	server := httptest.NewTLSServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	defer server.Close()
	ca := base64.StdEncoding.EncodeToString(pemOf("CERTIFICATE", server.Certificate().Raw))
	config, err := join.Load(kubeconfig(t, "server: '"+server.URL+"', certificate-authority-data: "+ca, "token: "+canary), "", join.Allow{})
	if err != nil {
		t.Fatal(err)
	}
	member, err := join.Connect(config)
	if err == nil {
		err = join.Join(t.Context(), join.Options{Name: "a", Hub: member, Member: member, MemberConfig: config})
	}
	if err == nil || !strings.Contains(err.Error(), "redirect") || strings.Contains(err.Error(), canary) || asked {
		t.Errorf("error = %v, followed: %v", err, asked)
	}
}

func TestJoinItselfRefuses(t *testing.T) {
	err := join.Join(t.Context(), join.Options{Name: "a", MemberConfig: &rest.Config{Host: "https://m", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}})
	if !errors.Is(err, join.ErrRefused) {
		t.Errorf("Join = %v, want %v", err, join.ErrRefused)
	}
}

// identify answers as a cluster that serves its namespace kube-system only.
func identify(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	text := `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"ours"}}`
	if !strings.Contains(r.URL.Path, "/namespaces/") {
		text = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"namespaces","kind":"Namespace"}]}`
	}
	_, _ = w.Write([]byte(text))
}

// system returns the UID of the namespace kube-system.
func system(t *testing.T, config *rest.Config) string {
	t.Helper()
	member, err := join.Connect(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{}
	if err := member.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, namespace); err != nil {
		t.Fatal(err)
	}
	return string(namespace.UID)
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// self returns a self-signed certificate, and its key.
func self(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	template.Subject.CommonName = name
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pemOf("CERTIFICATE", der), pemOf("EC PRIVATE KEY", encoded)
}
