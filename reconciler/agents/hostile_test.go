package agents_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/registration"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// TestForeignRequests are refused when they are made, with what is wrong.
func TestForeignRequests(t *testing.T) {
	w := worldOf(t)
	agent := pkix.Name{CommonName: identity.Agent("lone"), Organization: []string{identity.AgentsGroup}}
	byToken := hubOf(t, w.byToken(t, w.token(t, "", "")))
	bound := hubOf(t, w.byToken(t, w.token(t, "lone", "")))
	cases := map[string]struct {
		by      client.Client
		subject pkix.Name
		change  func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequest)
		says    string
	}{
		"a node":          {by: byToken, subject: pkix.Name{CommonName: "system:node:x", Organization: []string{"system:nodes"}}, says: "not for the certificate of an agent"},
		"a user":          {by: byToken, subject: pkix.Name{CommonName: "jane"}, says: "may ask for nothing else"},
		"another cluster": {by: bound, subject: pkix.Name{CommonName: identity.Agent("other"), Organization: []string{identity.AgentsGroup}}, says: "for the certificate of the agent of lone alone, not of other"},
		"two groups":      {by: byToken, subject: pkix.Name{CommonName: agent.CommonName, Organization: []string{identity.AgentsGroup, "system:nodes"}}, says: "there must be one: system:karmada:agents"},
		"a server": {by: byToken, subject: agent, says: "the usages are", change: func(_ *x509.CertificateRequest, csr *certificatesv1.CertificateSigningRequest) {
			csr.Spec.Usages = append(csr.Spec.Usages, certificatesv1.UsageServerAuth)
		}},
		"a name beside": {by: byToken, subject: agent, says: "it must have none", change: func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
			r.DNSNames = []string{"kubernetes"}
		}},
		"karmadactl's maker of rights": {by: byToken, subject: pkix.Name{CommonName: identity.Agent("rbac-generator"), Organization: agent.Organization}, says: "register the cluster with flotilla register"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.by.Create(t.Context(), asking(t, tc.subject, tc.change))
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("= %v, want forbidden with %q", err, tc.says)
			}
		})
	}
	t.Run("others may ask for others as ever", func(t *testing.T) {
		csr := asking(t, pkix.Name{CommonName: "jane"}, nil)
		if err := w.Hub.Create(t.Context(), csr); err != nil {
			t.Fatal(err)
		}
		if err := w.Hub.Delete(t.Context(), csr); err != nil {
			t.Error(err)
		}
	})
}

// TestFlood asks ten thousand times with one token.
func TestFlood(t *testing.T) {
	w := worldOf(t)
	if testing.Short() {
		t.Skip("asks ten thousand times")
	}
	cfg := rest.CopyConfig(w.byToken(t, w.token(t, "", "")))
	cfg.QPS = -1
	hub, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	const asks, side = 10_000, 8
	var taken, paced atomic.Int64
	csr := asking(t, pkix.Name{CommonName: identity.Agent("flood"), Organization: []string{identity.AgentsGroup}}, nil)
	var group sync.WaitGroup
	for range side {
		csr := csr.DeepCopy() // the encoder sets and resets its kind
		group.Go(func() {
			for range asks / side {
				err := hub.CertificatesV1().RESTClient().Post().Resource("certificatesigningrequests").Body(csr).MaxRetries(0).Do(t.Context()).Error()
				switch {
				case err == nil:
					taken.Add(1)
				case apierrors.IsTooManyRequests(err):
					paced.Add(1)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	if most := int64(100); taken.Load() > most || taken.Load() == 0 || taken.Load()+paced.Load() != asks {
		t.Errorf("%d were taken and %d put off, of %d", taken.Load(), paced.Load(), asks)
	}
	w.register(t, "calm", "id-calm") // somebody else is not kept waiting
	if err := w.Hub.DeleteAllOf(t.Context(), &certificatesv1.CertificateSigningRequest{}); err != nil {
		t.Error(err)
	}
}

// forged is a certificate that the control plane's authority might have made at
// any time.
type forged struct {
	subject    pkix.Name
	begin, end time.Time
	usage      x509.ExtKeyUsage
	foreign    bool // by another authority
}

func (w *world) forge(t *testing.T, f forged) *rest.Config {
	t.Helper()
	dir := filepath.Join(filepath.Dir(w.Kubeconfig), "pki")
	authorities, err := cert.CertsFromFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := keyutil.PrivateKeyFromFile(filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	signer, _ := parsed.(crypto.Signer)
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if f.foreign {
		signer = own
	}
	if f.usage == 0 {
		f.usage = x509.ExtKeyUsageClientAuth
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: f.subject, NotBefore: f.begin, NotAfter: f.end, ExtKeyUsage: []x509.ExtKeyUsage{f.usage},
	}, authorities[0], own.Public(), signer)
	if err != nil {
		if f.foreign { // a certificate of an authority that it cannot be of
			self := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: f.subject, NotBefore: f.begin, NotAfter: f.end, ExtKeyUsage: []x509.ExtKeyUsage{f.usage}}
			der, err = x509.CreateCertificate(rand.Reader, self, self, own.Public(), own)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	key, err := keyutil.MarshalPrivateKeyToPEM(own)
	if err != nil {
		t.Fatal(err)
	}
	return registration.Connection(w.admin, registration.Credentials{Certificate: pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), Key: key})
}

// TestOldCertificates shows certificates of all ages.
func TestOldCertificates(t *testing.T) {
	w := worldOf(t)
	w.register(t, "old", "id-old")
	now := time.Now()
	agent := pkix.Name{CommonName: identity.Agent("old"), Organization: []string{identity.AgentsGroup}}
	nobody := pkix.Name{CommonName: identity.Agent("never-seen"), Organization: []string{identity.AgentsGroup}}
	day := 24 * time.Hour
	cases := map[string]struct {
		forged
		token string
		want  string // user; empty: nobody
	}{
		"one that is good":                  {forged: forged{subject: agent, begin: now, end: now.Add(day)}, want: "system:karmada:agent:old"},
		"one that expired yesterday":        {forged: forged{subject: nobody, begin: now.Add(-9 * day), end: now.Add(-day)}, want: "system:karmada:expired-agent:never-seen"},
		"one that expired long ago":         {forged: forged{subject: nobody, begin: now.Add(-90 * day), end: now.Add(-31 * day)}},
		"one of an earlier registration":    {forged: forged{subject: agent, begin: now.Add(-day), end: now.Add(day)}},
		"an earlier one that expired":       {forged: forged{subject: agent, begin: now.Add(-9 * day), end: now.Add(-day)}},
		"an expired administrator":          {forged: forged{subject: pkix.Name{CommonName: "x", Organization: []string{"system:masters"}}, begin: now.Add(-9 * day), end: now.Add(-day)}},
		"an expired agent of more":          {forged: forged{subject: pkix.Name{CommonName: nobody.CommonName, Organization: []string{identity.AgentsGroup, "system:masters"}}, begin: now.Add(-9 * day), end: now.Add(-day)}},
		"an expired one of others":          {forged: forged{subject: nobody, begin: now.Add(-9 * day), end: now.Add(-day), foreign: true}},
		"an expired one that is a server's": {forged: forged{subject: nobody, begin: now.Add(-9 * day), end: now.Add(-day), usage: x509.ExtKeyUsageServerAuth}},
		"an expired one with a bad token":   {forged: forged{subject: nobody, begin: now.Add(-9 * day), end: now.Add(-day)}, token: "abcdef.0123456789abcdef"},
		"one that is not good yet":          {forged: forged{subject: nobody, begin: now.Add(day), end: now.Add(2 * day)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := w.forge(t, tc.forged)
			cfg.BearerToken = tc.token
			review := &authenticationv1.SelfSubjectReview{}
			err := hubOf(t, cfg).Create(t.Context(), review)
			got := review.Status.UserInfo.Username
			if got != tc.want || (tc.want == "") != apierrors.IsUnauthorized(err) {
				t.Errorf("is %q (%v), want %q", got, err, tc.want)
			}
		})
	}
}

// TestExpiredAgentComesBack renews a certificate that has expired, and tries what
// else it is good for.
func TestExpiredAgentComesBack(t *testing.T) {
	w := worldOf(t)
	w.register(t, "late", "id-late")
	subject := pkix.Name{CommonName: identity.Agent("late"), Organization: []string{identity.AgentsGroup}}
	// It was given in this registration, so it begins when that was.
	late := w.forge(t, forged{subject: subject, begin: time.Now().Add(-4 * time.Minute), end: time.Now().Add(-time.Second)})
	for what, err := range map[string]error{
		"read its Cluster":   hubOf(t, late).Get(t.Context(), client.ObjectKey{Name: "late"}, &clusterv1alpha1.Cluster{}),
		"list requests":      hubOf(t, late).List(t.Context(), &certificatesv1.CertificateSigningRequestList{}),
		"ask for another's":  hubOf(t, late).Create(t.Context(), asking(t, pkix.Name{CommonName: identity.Agent("lone"), Organization: subject.Organization}, nil)),
		"ask as somebody":    hubOf(t, late).Create(t.Context(), asking(t, pkix.Name{CommonName: "jane"}, nil)),
		"delete its Cluster": hubOf(t, late).Delete(t.Context(), clusterOf("late", "")),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s = %v, want forbidden", what, err)
		}
	}
	next, err := registration.Request(t.Context(), late, registration.Options{Cluster: "late", ClusterID: "id-late"})
	if err != nil {
		t.Fatal(err)
	}
	if err := hubOf(t, registration.Connection(w.admin, next)).Get(t.Context(), client.ObjectKey{Name: "late"}, &clusterv1alpha1.Cluster{}); err != nil {
		t.Errorf("with the next certificate: %v", err)
	}
	if err := w.Hub.Delete(t.Context(), clusterOf("late", "")); err != nil {
		t.Fatal(err)
	}
	servertest.Until(t, "the cluster is gone", func() bool {
		return apierrors.IsNotFound(w.Hub.Get(t.Context(), client.ObjectKey{Name: "late"}, &clusterv1alpha1.Cluster{}))
	})
	_, err = registration.Request(t.Context(), late, registration.Options{Cluster: "late"})
	if !errors.Is(err, registration.ErrDenied) || !strings.Contains(err.Error(), "there is no cluster late any more") {
		t.Errorf("of a cluster that is gone = %v", err)
	}
}
