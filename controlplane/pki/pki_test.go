package pki_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/controlplane/pki"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

var (
	start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	admin = pki.Identity{User: "admin", Groups: []string{"system:masters"}}
)

// fill asks the store for one file of each type.
func fill(t *testing.T, dir string, clk *testingclock.FakeClock) *pki.Store {
	t.Helper()
	s, err := pki.Open(dir, clk)
	if err != nil {
		t.Fatal(err)
	}
	_, err1 := s.Server("apiserver", "localhost", "127.0.0.1")
	_, err2 := s.Client("robot", pki.Identity{User: "robot", Groups: []string{"a", "b"}})
	_, err3 := s.FrontProxyClient("front-proxy-client")
	err4 := s.WriteKubeconfig(filepath.Join(dir, "admin.kubeconfig"), pki.Kubeconfig{Context: "hub", Server: "https://127.0.0.1:1", Identity: admin})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRestartFindsEverything(t *testing.T) {
	dir := t.TempDir()
	clk := testingclock.NewFakeClock(start)
	fill(t, dir, clk)
	first := contents(t, dir)
	clk.SetTime(start.Add(200 * day)) // less than two thirds of a year
	fill(t, dir, clk)
	if diff := cmp.Diff(first, contents(t, dir)); diff != "" {
		t.Errorf("files changed (-first +second):\n%s", diff)
	}
	for name := range first {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("mode of %s = %o, want 600", name, mode)
		}
	}
}

func TestRenewal(t *testing.T) {
	leaves := []string{"admin.kubeconfig", "apiserver.pem", "front-proxy-client.pem", "robot.pem"}
	cases := map[string]struct {
		after time.Duration
		want  []string // files that are new
	}{
		"nothing is due before two thirds of a certificate's life": {after: 2*year/3 - day},
		"certificates are due at two thirds of their life":         {after: 2*year/3 + day, want: leaves},
		"authorities are due at two thirds of theirs":              {after: 2*10*year/3 + day, want: append([]string{"ca.crt", "ca-signer.crt", "front-proxy-ca.crt"}, leaves...)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			clk := testingclock.NewFakeClock(start)
			fill(t, dir, clk)
			before := contents(t, dir)
			clk.SetTime(start.Add(tc.after))
			fill(t, dir, clk)
			changed := map[string]bool{}
			for file, content := range contents(t, dir) {
				if before[file] != content {
					changed[file] = true
				}
			}
			want := map[string]bool{}
			for _, file := range tc.want {
				want[file] = true
			}
			if diff := cmp.Diff(want, changed); diff != "" {
				t.Errorf("renewed files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRenewedAuthorityAndOldOneTrustEachOther(t *testing.T) {
	dir := t.TempDir()
	clk := testingclock.NewFakeClock(start)
	fill(t, dir, clk)
	oldCA, oldServing := contents(t, dir)["ca.crt"], contents(t, dir)["apiserver.pem"]

	renewed := start.Add(2*10*year/3 + day)
	clk.SetTime(renewed)
	fill(t, dir, clk)
	newCA, newServing := contents(t, dir)["ca.crt"], contents(t, dir)["apiserver.pem"]

	signer := contents(t, dir)["ca-signer.crt"]
	if alone, err := cert.ParseCertsPEM([]byte(signer)); err != nil || len(alone) != 1 || !strings.HasPrefix(newCA, signer) {
		t.Errorf("the signer's file has %d certificates, want the newest of the bundle alone: %v", len(alone), err)
	}
	verify(t, "new certificate before a client that has the signer's alone", signer, newServing, renewed)
	verify(t, "new certificate before an old client", oldCA, newServing, renewed)
	verify(t, "new certificate before a new client", newCA, newServing, renewed)
	verify(t, "old certificate before a new client", newCA, oldServing, start.Add(day))

	clk.SetTime(start.Add(11 * year)) // the first certificate is over
	fill(t, dir, clk)
	bundle, err := cert.ParseCertsPEM([]byte(contents(t, dir)["ca.crt"]))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range bundle[1:] {
		if c.NotAfter.After(bundle[0].NotAfter) {
			t.Errorf("bundle is not newest first: %v after %v", c.NotAfter, bundle[0].NotAfter)
		}
	}
	verify(t, "today's certificate", contents(t, dir)["ca.crt"], contents(t, dir)["apiserver.pem"], start.Add(11*year))
}

// TestAClockThatWasWrongLeavesNoTrace checks that files from the time when the clock was ahead
// are ignored once it is right, and that those made then are valid.
func TestAClockThatWasWrongLeavesNoTrace(t *testing.T) {
	for name, wrong := range map[string]time.Duration{
		"so far ahead that the authority was renewed": 8 * year, "so far ahead that it had expired": 15 * year, "before it was made": -20 * year,
	} {
		t.Run(name, func(t *testing.T) {
			dir, clk := t.TempDir(), testingclock.NewFakeClock(start)
			fill(t, dir, clk)
			oldCA, now := contents(t, dir)["ca.crt"], start.Add(30*day)
			clk.SetTime(start.Add(wrong))
			fill(t, dir, clk)
			clk.SetTime(now)
			fill(t, dir, clk)
			files := contents(t, dir)
			for what, authority := range map[string]string{"a client of before": oldCA, "a client of now": files["ca.crt"], "one that has the signer's alone": files["ca-signer.crt"]} {
				verify(t, "today's certificate before "+what, authority, files["apiserver.pem"], now)
			}
		})
	}
}

func TestChangedWishesMakeNewCertificates(t *testing.T) {
	dir := t.TempDir()
	s := fill(t, dir, testingclock.NewFakeClock(start))
	before := contents(t, dir)
	if _, err := s.Server("apiserver", "127.0.0.1", "localhost"); err != nil { // another order
		t.Fatal(err)
	}
	if contents(t, dir)["apiserver.pem"] != before["apiserver.pem"] {
		t.Error("the order of hosts made a new certificate")
	}
	if _, err := s.Server("apiserver", "127.0.0.1", "localhost", "hub.example.org"); err != nil {
		t.Fatal(err)
	}
	got, err := cert.ParseCertsPEM([]byte(contents(t, dir)["apiserver.pem"]))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"localhost", "hub.example.org"}, got[0].DNSNames); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestDamage(t *testing.T) {
	cases := map[string]struct {
		file, content string
		wantErr       bool
	}{
		"a torn certificate is made anew":                {file: "apiserver.pem", content: "-----BEGIN CERTIFICATE-----\nxx"},
		"a certificate without its key is made anew":     {file: "robot.pem", content: "certificate alone"},
		"a torn kubeconfig is made anew":                 {file: "admin.kubeconfig", content: "{"},
		"a torn authority is an error, not replaced":     {file: "ca.crt", content: "xx", wantErr: true},
		"a torn key is an error, not replaced":           {file: "ca.key", content: "xx", wantErr: true},
		"a foreign authority is an error":                {file: "ca.crt", content: "front-proxy-ca.crt", wantErr: true},
		"a torn service-account key is an error":         {file: "service-account.key", content: "xx", wantErr: true},
		"a torn certificate of the signer is made anew":  {file: "ca-signer.crt", content: "xx"},
		"a lost public key follows from the private one": {file: "service-account.pub", content: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			clk := testingclock.NewFakeClock(start)
			fill(t, dir, clk)
			content := tc.content
			if other, ok := contents(t, dir)[content]; ok {
				content = other
			}
			if err := os.WriteFile(filepath.Join(dir, tc.file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if tc.wantErr {
				if _, err := pki.Open(dir, clk); err == nil {
					t.Error("no error")
				}
				return
			}
			fill(t, dir, clk)
			if contents(t, dir)[tc.file] == content {
				t.Errorf("%s was left as it was", tc.file)
			}
		})
	}
}

func TestKubeconfigIsWhole(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, testingclock.NewFakeClock(start))
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "admin.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(config.CertData, config.KeyData); err != nil {
		t.Errorf("certificate and key: %v", err)
	}
	certificates, err := cert.ParseCertsPEM(config.CertData)
	if err != nil {
		t.Fatal(err)
	}
	got := pki.Identity{User: certificates[0].Subject.CommonName, Groups: certificates[0].Subject.Organization}
	if diff := cmp.Diff(admin, got); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(contents(t, dir)["ca.crt"], string(config.CAData)); diff != "" {
		t.Errorf("authority (-want +got):\n%s", diff)
	}
}

// TestKubeconfigUnderFurtherNames checks that the file has the control plane under each name,
// and is rewritten if an older one lacks a name.
func TestKubeconfigUnderFurtherNames(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "admin.kubeconfig")
	s := fill(t, dir, testingclock.NewFakeClock(start))
	before, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	err = s.WriteKubeconfig(path, pki.Kubeconfig{Context: "hub", Also: []string{"other"}, Server: "https://127.0.0.1:1", Identity: admin})
	if err != nil {
		t.Fatal(err)
	}
	got, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.AuthInfos["hub"].ClientCertificateData, got.AuthInfos["hub"].ClientCertificateData); diff != "" || got.CurrentContext != "hub" {
		t.Errorf("current context %s; certificate (-before +got):\n%s", got.CurrentContext, diff)
	}
	for _, name := range []string{"hub", "other"} {
		config, err := clientcmd.NewNonInteractiveClientConfig(*got, name, nil, nil).ClientConfig()
		if err != nil || config.Host != "https://127.0.0.1:1" || len(config.CertData) == 0 || len(config.CAData) == 0 || got.Clusters[name] == nil {
			t.Errorf("context %s: %v", name, err)
		}
	}
}

func TestRunRenewsWhenDue(t *testing.T) {
	dir := t.TempDir()
	clk := testingclock.NewFakeClock(start)
	s := fill(t, dir, clk)
	serving, key, kept := filepath.Join(dir, "apiserver.pem"), filepath.Join(dir, "ca.key"), filepath.Join(dir, "kept")
	before := read(t, serving)

	ctx, stop := context.WithCancel(t.Context())
	reports, done := make(chan error), make(chan struct{})
	go func() { defer close(done); s.Run(ctx, func(err error) { reports <- err }) }()
	t.Cleanup(func() { stop(); <-done })
	poll(t, func() bool { return clk.HasWaiters() })

	// A damaged key makes the first check fail, and the error is reported.
	if err := errors.Join(os.Rename(key, kept), os.WriteFile(key, []byte("xx"), 0o600)); err != nil {
		t.Fatal(err)
	}
	clk.Step(300 * day)
	if err := <-reports; err == nil {
		t.Error("a torn key was not reported")
	}
	if read(t, serving) != before {
		t.Error("renewed under a torn authority")
	}
	// The next check finds the key again.
	if err := os.Rename(kept, key); err != nil {
		t.Fatal(err)
	}
	clk.Step(time.Hour)
	poll(t, func() bool { return read(t, serving) != before })
}

func poll(t *testing.T, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// verify checks a serving certificate against an authority at a time.
func verify(t *testing.T, what, authority, pair string, at time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(authority))
	certificates, err := cert.ParseCertsPEM([]byte(pair))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := certificates[0].Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at, DNSName: "localhost"}); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// contents returns the contents of all files in a folder, by name.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, entry := range entries {
		out[entry.Name()] = read(t, filepath.Join(dir, entry.Name()))
	}
	return out
}
