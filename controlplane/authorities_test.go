package controlplane_test

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/controlplane"
	"github.com/flotilla-io/flotilla/controlplane/pki"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

// TestAuthoritiesThatAreDue starts a control plane, twice, on a folder whose
// authorities are past two thirds of their lives.
func TestAuthoritiesThatAreDue(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	old := leave(t, dir)
	for _, start := range []string{"the start that renews them", "the start after it"} {
		t.Run(start, func(t *testing.T) {
			env, err := servertest.StartIn(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := env.Stop(); err != nil {
					t.Error(err)
				}
			}()
			for _, name := range []string{"ca.crt", "front-proxy-ca.crt"} {
				if bundle, err := cert.CertsFromFile(filepath.Join(dir, "pki", name)); err != nil || len(bundle) != 2 {
					t.Errorf("%s has %d certificates, want the renewed one and its predecessor: %v", name, len(bundle), err)
				}
			}
			now := config(t, env.Kubeconfig)
			before := config(t, old.kubeconfig)
			before.Host = now.Host
			signed := requestCertificate(t, env.Config, "signed")
			signed.Host = now.Host
			for what, tc := range map[string]struct {
				config *rest.Config
				want   string
			}{
				"the kubeconfig of before":                  {before, "old-admin"},
				"the kubeconfig of now":                     {now, "system:admin"},
				"a signed request, trusting as before":      {trusting(signed, before.CAData), "signed"},
				"a signed request, trusting as now":         {trusting(signed, now.CAData), "signed"},
				"the aggregator's certificate of before":    {proxying(now, old.frontProxy), "proxied"},
				"the aggregator's certificate as it is now": {proxying(now, filepath.Join(dir, "pki", "front-proxy-client.pem")), "proxied"},
			} {
				if diff := cmp.Diff(tc.want, whoAmI(t, tc.config)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
			publishes(t, env.Config, string(now.CAData))
		})
	}
}

// predecessors are files of clients that know the authorities before their renewal.
type predecessors struct{ kubeconfig, frontProxy string }

// leave makes authorities of seven years ago, and certificates that they signed just now.
func leave(t *testing.T, dir string) predecessors {
	t.Helper()
	clk := testingclock.NewFakeClock(time.Now().AddDate(-7, 0, 0))
	keys, err := pki.Open(filepath.Join(dir, "pki"), clk)
	if err != nil {
		t.Fatal(err)
	}
	clk.SetTime(time.Now())
	aside := t.TempDir()
	out := predecessors{filepath.Join(aside, "admin.kubeconfig"), filepath.Join(aside, "front-proxy-client.pem")}
	err = keys.WriteKubeconfig(out.kubeconfig, pki.Kubeconfig{
		Context: "hub", Server: "https://127.0.0.1:1", Identity: pki.Identity{User: "old-admin", Groups: []string{"system:masters"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file, err := keys.FrontProxyClient("front-proxy-client")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out.frontProxy, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

func config(t *testing.T, kubeconfig string) *rest.Config {
	t.Helper()
	out, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func trusting(cfg *rest.Config, authority []byte) *rest.Config {
	out := rest.CopyConfig(cfg)
	out.CAData = authority
	return out
}

// proxying speaks for somebody as the aggregator does, with the certificate in a file.
func proxying(cfg *rest.Config, file string) *rest.Config {
	out := rest.AnonymousClientConfig(cfg)
	out.CertFile, out.KeyFile = file, file
	out.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport.NewAuthProxyRoundTripper("proxied", "", []string{"system:masters"}, nil, next)
	})
	return out
}

func whoAmI(t *testing.T, cfg *rest.Config) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err.Error()
	}
	return review.Status.UserInfo.Username
}

// requestCertificate has the control plane sign a client certificate.
func requestCertificate(t *testing.T, hub *rest.Config, name string) *rest.Config {
	t.Helper()
	client, err := kubernetes.NewForConfig(hub)
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	private, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	request, err := cert.MakeCSR(private, &pkix.Name{CommonName: name}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	usages := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	asked, uid, err := csr.RequestCertificateWithContext(t.Context(), client, request, "", certificatesv1.KubeAPIServerClientSignerName, nil, usages, private)
	if err != nil {
		t.Fatal(err)
	}
	requests := client.CertificatesV1().CertificateSigningRequests()
	made, err := requests.Get(t.Context(), asked, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
	}}
	if _, err := requests.UpdateApproval(t.Context(), asked, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	signed, err := csr.WaitForCertificate(t.Context(), client, asked, uid)
	if err != nil {
		t.Fatal(err)
	}
	return &rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: signed, KeyData: key}}
}

// publishes wants what namespaces and clusters are told to trust.
func publishes(t *testing.T, hub *rest.Config, authority string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(hub)
	if err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "the authority is published", func(ctx context.Context) error {
		root, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if diff := cmp.Diff(authority, root.Data["ca.crt"]); diff != "" {
			return errors.New("namespaces have another one (-want +got): " + diff)
		}
		return nil
	})
}

// TestARenewalReachesTheSigner lets an authority become due while it signs.
func TestARenewalReachesTheSigner(t *testing.T) {
	const year = 365 * 24 * time.Hour
	clk := testingclock.NewFakeClock(time.Now())
	plane, err := controlplane.New(t.Context(), controlplane.Options{
		DataDir: filepath.Join(t.TempDir(), "data"), UnsafeNoFsync: true, Clock: clk,
		Certificates: controlplane.Certificates{Duration: 20 * year}, // cut off where the authority ends
	})
	if err != nil {
		t.Fatal(err)
	}
	end := func(cfg *rest.Config) time.Time {
		signed, err := cert.ParseCertsPEM(cfg.CertData)
		if err != nil {
			t.Fatal(err)
		}
		return signed[0].NotAfter
	}
	err = plane.Run(t.Context(), func(ctx context.Context, hub *rest.Config) error {
		first := end(requestCertificate(t, hub, "first"))
		if first.After(time.Now().Add(11 * year)) {
			t.Errorf("the first certificate outlives the authority: %v", first)
		}
		servertest.Until(t, "the clock is looked at", clk.HasWaiters)
		clk.Step(7 * year)
		servertest.Until(t, "what is signed ends with the renewed authority", func() bool {
			return end(requestCertificate(t, hub, "later")).After(first.Add(6 * year))
		})
		return errDone
	})
	if !errors.Is(err, errDone) {
		t.Error(err)
	}
}

var errDone = errors.New("done")
