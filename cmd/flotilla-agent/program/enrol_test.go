package program

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
)

// TestAnExpiredCertificateAndNoHub: an agent whose certificate has expired, with a token
// that it was given once, does not wait for a hub that is away: what it knows is on disk.
func TestAnExpiredCertificateAndNoHub(t *testing.T) {
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // takes connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	member := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u"}}`)
	}))
	t.Cleanup(member.Close)
	folder := t.TempDir()
	o := parse(t, "--cluster-name", site1, "--data-dir", folder, "--bootstrap-token", "abcdef.0123456789abcdef",
		"--hub-endpoint", silent.Addr().String(), "--discovery-token-ca-cert-hash", "sha256:"+strings.Repeat("0", 64))
	certificate, key := expired(t)
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["hub"] = &clientcmdapi.Cluster{Server: "https://" + silent.Addr().String()}
	kubeconfig.AuthInfos["agent"] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	kubeconfig.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "agent"}
	kubeconfig.CurrentContext = "hub"
	if err := clientcmd.WriteToFile(*kubeconfig, filepath.Join(folder, "hub.kubeconfig")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := o.enroll(ctx, &rest.Config{Host: member.URL}); err != nil {
		t.Errorf("it waits for the hub: %v", err)
	}
}

// TestWhereACertificateIsGoodForNothing: rights are taken one by one after a Cluster is
// gone, and what is still allowed meanwhile says nothing.
func TestWhereACertificateIsGoodForNothing(t *testing.T) {
	for name, c := range map[string]struct {
		answer int // to who asks for the cluster; anything else is allowed
		want   bool
	}{
		"a cluster that is registered":                {answer: http.StatusOK},
		"one that is gone, while rights are left":     {answer: http.StatusNotFound, want: true},
		"one whose agent has no right to it any more": {answer: http.StatusForbidden, want: true},
		"a hub that does not know the certificate":    {answer: http.StatusUnauthorized, want: true},
		"a hub that starts":                           {answer: http.StatusServiceUnavailable},
		"a hub in trouble":                            {answer: http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasPrefix(r.URL.Path, "/apis/cluster.karmada.io/") {
					w.WriteHeader(c.answer)
				}
				_, _ = fmt.Fprint(w, "{}")
			}))
			t.Cleanup(hub.Close)
			folder := t.TempDir()
			kubeconfig := clientcmdapi.NewConfig()
			kubeconfig.Clusters["hub"] = &clientcmdapi.Cluster{Server: hub.URL}
			kubeconfig.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub"}
			kubeconfig.CurrentContext = "hub"
			if err := clientcmd.WriteToFile(*kubeconfig, filepath.Join(folder, "hub.kubeconfig")); err != nil {
				t.Fatal(err)
			}
			if got := !parse(t, "--cluster-name", site1, "--data-dir", folder).known(t.Context()); got != c.want {
				t.Errorf("the token that was given counts: %t, want %t", got, c.want)
			}
		})
	}
}

// TestAHubAtAnotherAddress has the flags name where the hub is, and the kubeconfig where it was.
func TestAHubAtAnotherAddress(t *testing.T) {
	gone := httptest.NewTLSServer(nil)
	gone.Close()
	for name, c := range map[string]struct {
		was       string // empty: it is gone
		answer    int    // of the hub that the flags name
		known     bool
		followsTo bool
	}{
		"it takes the certificate":                 {answer: http.StatusOK, known: true, followsTo: true},
		"it has let go of the cluster":             {answer: http.StatusNotFound},
		"it is another one":                        {answer: http.StatusUnauthorized},
		"it starts":                                {answer: http.StatusServiceUnavailable},
		"it answers where it was, with a fault":    {was: "fault", answer: http.StatusOK, known: true},
		"it answers where it was, as well as here": {was: "well", answer: http.StatusOK, known: true},
	} {
		t.Run(name, func(t *testing.T) {
			answers := func(status int) *httptest.Server {
				s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(status)
					_, _ = fmt.Fprint(w, "{}")
				}))
				t.Cleanup(s.Close)
				return s
			}
			hub, was := answers(c.answer), gone.URL
			switch c.was {
			case "fault":
				was = answers(http.StatusInternalServerError).URL
			case "well":
				was = answers(http.StatusOK).URL
			}
			folder := t.TempDir()
			kubeconfig := clientcmdapi.NewConfig()
			authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hub.Certificate().Raw}) // the same for all
			kubeconfig.Clusters["hub"] = &clientcmdapi.Cluster{Server: was, CertificateAuthorityData: authority}
			kubeconfig.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub"}
			kubeconfig.CurrentContext = "hub"
			file := filepath.Join(folder, "hub.kubeconfig")
			if err := clientcmd.WriteToFile(*kubeconfig, file); err != nil {
				t.Fatal(err)
			}
			o := parse(t, "--cluster-name", site1, "--data-dir", folder, "--bootstrap-token", "abcdef.0123456789abcdef",
				"--hub-endpoint", strings.TrimPrefix(hub.URL, "https://"), "--discovery-token-ca-cert-hash", "sha256:"+strings.Repeat("0", 64))
			if got := o.known(t.Context()); got != c.known {
				t.Errorf("the certificate that is there counts: %t, want %t", got, c.known)
			}
			is, err := clientcmd.LoadFromFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := is.Clusters["hub"].Server == hub.URL; got != c.followsTo {
				t.Errorf("the kubeconfig leads to %s, was %s, the hub is at %s", is.Clusters["hub"].Server, was, hub.URL)
			}
		})
	}
}

// expired returns a certificate that is good no more, and its key.
func expired(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(-time.Minute)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(private); err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}
