package credentials_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/keyutil"

	"github.com/flotilla-io/flotilla/agent/credentials"
	"github.com/flotilla-io/flotilla/internal/registration"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

const day = 24 * time.Hour

// certify makes a certificate that counts from now on, by its own authority.
func certify(t *testing.T, name string, from time.Time, life time.Duration) registration.Credentials {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(from.UnixNano()), Subject: pkix.Name{CommonName: name, Organization: []string{identity.AgentsGroup}},
		NotBefore: from.Add(-5 * time.Minute), NotAfter: from.Add(life), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return registration.Credentials{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: private}
}

// memory keeps a kubeconfig.
type memory struct {
	mu      sync.Mutex
	content []byte
	fault   error
}

func (m *memory) Load(context.Context) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.content, nil
}

func (m *memory) Save(_ context.Context, kubeconfig []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault == nil {
		m.content = kubeconfig
	}
	return m.fault
}

// desk gives certificates, as a hub does.
type desk struct {
	t     *testing.T
	life  time.Duration
	ahead time.Duration // of the hub's clock
	slept time.Duration // how long the machine sleeps before it reads the first answer
	mu    sync.Mutex
	fault error
	times []time.Duration // when it was asked, since begin
	begin time.Time
}

func (d *desk) request(_ context.Context, _ *rest.Config, o registration.Options) (registration.Credentials, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.times = append(d.times, time.Since(d.begin).Round(time.Second))
	if d.fault != nil {
		return registration.Credentials{}, d.fault
	}
	given := certify(d.t, identity.Agent(o.Cluster), time.Now().Add(d.ahead), d.life)
	if len(d.times) == 1 {
		<-time.After(d.slept)
	}
	return given, nil
}

func configOf(c registration.Credentials) *rest.Config {
	return &rest.Config{Host: "https://hub:6443", TLSClientConfig: rest.TLSClientConfig{CertData: c.Certificate, KeyData: c.Key}}
}

func TestWhenACertificateIsRenewed(t *testing.T) {
	cases := map[string]struct {
		life, age time.Duration // of the certificate at the start
		fault     error         // of the hub
		after     time.Duration // when the fault is over
		skew      time.Duration
		ahead     time.Duration // what the hub's certificates are ahead
		slept     time.Duration // after the first was given
		watch     time.Duration
		want      []time.Duration
		most      int // bounds the number of requests where want is nil
	}{
		"after two thirds of its life": {life: 9 * day, watch: 7 * day, want: []time.Duration{6 * day}},
		"again and again":              {life: 3 * day, watch: 7 * day, want: []time.Duration{2 * day, 4 * day, 6 * day}},
		"at once where it is due":      {life: 9 * day, age: 8 * day, watch: day, want: []time.Duration{0}},
		"at once where it has expired": {life: 9 * day, age: 12 * day, watch: day, want: []time.Duration{0}},
		"by the hub's clock":           {life: 9 * day, skew: 6 * day, ahead: 6 * day, watch: day, want: []time.Duration{0}},
		"until the hub gives one, less and less often": {
			life: 9 * day, age: 8 * day, fault: errors.New("no"), after: time.Minute, watch: 10 * time.Minute,
			want: []time.Duration{0, 10 * time.Second, 30 * time.Second, 70 * time.Second},
		},
		"not more often than every five minutes":                            {life: 9 * day, age: 8 * day, fault: errors.New("no"), after: 10 * time.Hour, watch: 10 * time.Hour, most: 130},
		"at once where the machine slept through the one that it was given": {life: 9 * day, age: 8 * day, slept: 10 * day, watch: 12 * day, want: []time.Duration{0, 10 * day}},
		"not all the time where a clock is wrong":                           {life: 9 * day, skew: 20 * day, watch: 24 * time.Hour, most: 26},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &desk{t: t, life: c.life, ahead: c.ahead, slept: c.slept, fault: c.fault, begin: time.Now()}
				var messages []string
				ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), funcr.New(func(_, args string) { messages = append(messages, args) }, funcr.Options{})))
				k, err := credentials.New(configOf(certify(t, identity.Agent("east"), time.Now().Add(-c.age), c.life)), credentials.Options{
					Cluster: "east", Store: &memory{}, Request: d.request, Skew: func() time.Duration { return c.skew },
				})
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					k.Run(ctx)
				}()
				if c.fault != nil {
					<-time.After(c.after)
					d.mu.Lock()
					d.fault = nil
					d.mu.Unlock()
				}
				<-time.After(c.watch - c.after)
				cancel()
				<-done
				for i := range d.times {
					if i < len(c.want) && d.times[i]-c.want[i] < 5*time.Minute && d.times[i] >= c.want[i] {
						d.times[i] = c.want[i] // looks are five minutes apart
					}
				}
				if c.want == nil {
					if len(d.times) > c.most || len(d.times) == 0 {
						t.Errorf("asked %d times in %s", len(d.times), c.watch)
					}
				} else if diff := cmp.Diff(c.want, d.times); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
				for _, line := range messages {
					if strings.Contains(line, "PRIVATE KEY") {
						t.Error("a key was logged")
					}
				}
			})
		})
	}
}

func TestWhichCredentialsAreKept(t *testing.T) {
	now := time.Now()
	cases := map[string]struct {
		cfg  *rest.Config
		want string // of an error
	}{
		"a token":                              {cfg: &rest.Config{Host: "https://hub", BearerToken: "t"}},
		"the certificate of an administrator":  {cfg: configOf(certify(t, "system:admin", now, day))},
		"the certificate of the agent":         {cfg: configOf(certify(t, identity.Agent("east"), now, day))},
		"the certificate of another's agent":   {cfg: configOf(certify(t, identity.Agent("west"), now, day)), want: "the kubeconfig is that of the agent of west, and this is to be the one of east"},
		"a certificate with another's key":     {cfg: configOf(registration.Credentials{Certificate: certify(t, "x", now, day).Certificate, Key: certify(t, "x", now, day).Key}), want: "cannot be used"},
		"a certificate in a file that is none": {cfg: &rest.Config{TLSClientConfig: rest.TLSClientConfig{CertFile: "/nowhere", KeyFile: "/nowhere"}}, want: "read the certificate of the agent"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := credentials.New(c.cfg, credentials.Options{Cluster: "east", Store: &memory{}})
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// A server sees by which certificate it is asked, without a restart of who asks.
func TestACertificateIsExchangedWhileItIsInUse(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.TLS.PeerCertificates[0].NotAfter.UTC().Format(time.RFC3339)))
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()

	old := certify(t, identity.Agent("east"), time.Now().Add(-3*day), 4*day)
	cfg := configOf(old)
	cfg.Host = server.URL
	cfg.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	store := credentials.File{Path: filepath.Join(t.TempDir(), "kubeconfig")}
	d := &desk{t: t, life: 9 * day, begin: time.Now()}
	renewed := make(chan struct{}, 1)
	k, err := credentials.New(cfg, credentials.Options{Cluster: "east", Store: store, Request: d.request, Renewed: func() { renewed <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(k.Config())
	if err != nil {
		t.Fatal(err)
	}
	ask := func() string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(req)
		if errors.Is(err, net.ErrClosed) {
			answer, err = client.Do(req) // it was caught by the exchange: clients ask again
		}
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		out, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	before := ask()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Run(ctx)
	}()
	<-renewed
	after := ask()
	cancel()
	<-done
	if before == after {
		t.Errorf("asked by the certificate until %s both times", before)
	}
	kept, err := clientcmd.BuildConfigFromFlags("", store.Path)
	if err != nil {
		t.Fatal(err)
	}
	_, to, err := registration.Life(kept.CertData)
	if err != nil || to.UTC().Format(time.RFC3339) != after || kept.Host != server.URL {
		t.Errorf("kept is one until %s for %s, %v; in use is one until %s", to, kept.Host, err, after)
	}
	if info, err := os.Stat(store.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig has mode %s, %v", info.Mode(), err)
	}
}

// Somebody registers the cluster anew while the agent runs.
func TestAKubeconfigThatIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		cases := map[string]struct {
			next registration.Credentials
			want int
		}{
			"by one that is good for longer": {certify(t, identity.Agent("east"), now, 30*day), 1},
			"by a later one, for less long":  {certify(t, identity.Agent("east"), now.Add(time.Minute), 3*day), 1},
			"by an older one":                {certify(t, identity.Agent("east"), now.Add(-8*day), 10*day), 0},
			"by that of another cluster":     {certify(t, identity.Agent("west"), now, 30*day), 0},
		}
		for name, c := range cases {
			taken := 0
			cfg := configOf(certify(t, identity.Agent("east"), now, 9*day))
			kubeconfig, err := registration.Kubeconfig(cfg, "east", c.next)
			if err != nil {
				t.Fatal(err)
			}
			k, err := credentials.New(cfg, credentials.Options{
				Cluster: "east", Store: &memory{content: kubeconfig}, Renewed: func() { taken++ }, Request: (&desk{t: t, fault: errors.New("no")}).request,
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go k.Run(ctx)
			synctest.Wait()
			cancel()
			synctest.Wait()
			if taken != c.want {
				t.Errorf("%s: taken over %d times, want %d", name, taken, c.want)
			}
		}
	})
}

// The hub's authority is replaced: who sees to that writes both into the kubeconfigs
// of the agents first, which go on running, and renew their certificates.
func TestAnAuthorityThatIsReplaced(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	old := certify(t, identity.Agent("east"), time.Now().Add(-3*day), 4*day)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	cfg := configOf(old)
	cfg.Host, cfg.CAData = server.URL, certify(t, "the authority before", time.Now(), day).Certificate
	kubeconfig, err := registration.Kubeconfig(cfg, "east", old)
	if err != nil {
		t.Fatal(err)
	}
	replaced, err := clientcmd.Load(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range replaced.Clusters {
		cluster.CertificateAuthorityData = append(cluster.CertificateAuthorityData, authority...)
		cluster.DisableCompression = true
	}
	if kubeconfig, err = clientcmd.Write(*replaced); err != nil {
		t.Fatal(err)
	}
	store := &memory{content: kubeconfig}
	taken := make(chan struct{}, 2)
	k, err := credentials.New(cfg, credentials.Options{
		Cluster: "east", Store: store, Request: (&desk{t: t, life: 9 * day, begin: time.Now()}).request, Renewed: func() { taken <- struct{}{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(k.Config())
	if err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(req)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}
	if err := ask(); err == nil {
		t.Error("a hub of another authority is trusted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Run(ctx)
	}()
	<-taken // the authority
	<-taken // the next certificate
	cancel()
	<-done
	if err := ask(); err != nil {
		t.Errorf("the hub is not trusted by its new authority: %v", err)
	}
	kept, err := clientcmd.Load(store.content)
	if err != nil {
		t.Fatal(err)
	}
	for name, cluster := range kept.Clusters {
		if diff := cmp.Diff(replaced.Clusters[name], cluster); diff != "" {
			t.Errorf("what is kept of the hub (-replaced +kept):\n%s", diff)
		}
	}
	for name, user := range kept.AuthInfos {
		if cmp.Equal(replaced.AuthInfos[name], user) {
			t.Error("the next certificate was not kept")
		}
	}
}
