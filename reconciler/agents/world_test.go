package agents_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"os"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/registration"
	"github.com/flotilla-io/flotilla/internal/registration/token"
	"github.com/flotilla-io/flotilla/reconciler/agents/agentstest"
)

var shared struct {
	servertest.Shared
	loops sync.Once
}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// world is a control plane with the loops that clusters are registered by.
type world struct {
	*servertest.Env
	// admin is the administrator's way in, over the network.
	admin *rest.Config
	hash  string
}

func worldOf(t *testing.T) *world {
	t.Helper()
	env := shared.Env(t)
	admin, err := clientcmd.BuildConfigFromFlags("", env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := cert.ParseCertsPEM(admin.CAData)
	if err != nil {
		t.Fatal(err)
	}
	shared.loops.Do(func() { env.StartLoops(t, agentstest.Register) }) // they end with the process
	return &world{Env: env, admin: admin, hash: registration.CAHash(ca[0])}
}

// token makes a token for a cluster, or for any.
func (w *world) token(t *testing.T, cluster, id string) string {
	t.Helper()
	made, _, err := token.Create(t.Context(), w.Hub, token.Options{Cluster: cluster, ClusterID: id})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// byToken is a connection as it is discovered.
func (w *world) byToken(t *testing.T, with string) *rest.Config {
	t.Helper()
	cfg, err := registration.Discover(t.Context(), registration.Discovery{Endpoint: w.admin.Host, Token: with, CAHashes: []string{w.hash}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// register gives a cluster its first certificate and makes its Cluster.
func (w *world) register(t *testing.T, name, id string) *rest.Config {
	t.Helper()
	agent := w.first(t, name, id)
	if err := hubOf(t, agent).Create(t.Context(), clusterOf(name, id)); err != nil {
		t.Fatal(err)
	}
	w.leaves(t, name)
	return agent
}

// first gives a cluster its first certificate.
func (w *world) first(t *testing.T, name, id string) *rest.Config {
	t.Helper()
	return w.firstBy(t, w.byToken(t, w.token(t, name, id)), name, id)
}

// firstBy does so by a token.
func (w *world) firstBy(t *testing.T, cfg *rest.Config, name, id string) *rest.Config {
	t.Helper()
	credentials, err := registration.Request(t.Context(), cfg, registration.Options{Cluster: name, ClusterID: id})
	if err != nil {
		t.Fatal(err)
	}
	agent := registration.Connection(cfg, credentials)
	servertest.Until(t, "the agent's rights count", func() bool {
		err := hubOf(t, agent).Get(t.Context(), client.ObjectKey{Name: name}, &clusterv1alpha1.Cluster{})
		return !apierrors.IsForbidden(err)
	})
	return agent
}

// leaves removes a cluster in the end.
func (w *world) leaves(t *testing.T, name string) {
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := w.Hub.Delete(ctx, &clusterv1alpha1.Cluster{ObjectMeta: clusterOf(name, "").ObjectMeta}); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

func clusterOf(name, id string) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{ID: id, SyncMode: clusterv1alpha1.Pull}}
	c.Name = name
	return c
}

func hubOf(t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(cfg, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// asking is a request for a certificate as somebody else might make it.
func asking(t *testing.T, subject pkix.Name, change func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequest)) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: subject}
	csr := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeAPIServerClientSignerName,
		Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
	}}
	csr.GenerateName = "test-"
	if change != nil {
		change(template, csr)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return csr
}
