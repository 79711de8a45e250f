package webhook_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/interpreters/webhook"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// timeout is how long a test waits for what must come.
const timeout = 2 * time.Minute

// server is a webhook. It speaks HTTPS with a certificate of its own authority.
type server struct {
	*httptest.Server
	authority *issuer
	mu        sync.Mutex
	seen      [][]byte
}

// serve runs handle behind HTTPS; it is told the question. The certificate is
// for the hosts, or, without any, for this machine.
func serve(t *testing.T, handle handler, hosts ...string) *server {
	t.Helper()
	s := &server{authority: authority(t)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller went away
		}
		var in configv1alpha1.ResourceInterpreterContext
		if err := json.Unmarshal(body, &in); err != nil || in.Request == nil {
			t.Errorf("the question cannot be read: %v: %s", err, body)
			return
		}
		s.mu.Lock()
		s.seen = append(s.seen, body)
		s.mu.Unlock()
		handle(w, r, in.Request)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{s.authority.issue(t, hosts...)}}
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// asked is how many questions came in.
func (s *server) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// issuer is an authority of certificates.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func authority(t *testing.T) *issuer {
	t.Helper()
	a := &issuer{}
	a.certificate, a.key = signed(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	return a
}

// issue returns a certificate for hosts.
func (a *issuer) issue(t *testing.T, hosts ...string) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{DNSNames: hosts, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if len(hosts) == 0 {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	certificate, key := signed(t, template, a)
	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

// signed makes a certificate; without an authority it signs itself.
func signed(t *testing.T, template *x509.Certificate, by *issuer) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if by == nil {
		by = &issuer{template, key}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return out, key
}

func (a *issuer) bundle() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// reply answers with fields of a response, in JSON, beside uid and successful.
func reply(fields string) func(http.ResponseWriter, *http.Request, *configv1alpha1.ResourceInterpreterRequest) {
	return func(w http.ResponseWriter, _ *http.Request, asked *configv1alpha1.ResourceInterpreterRequest) {
		_, _ = io.WriteString(w, envelope(asked.UID, `"successful":true,`+fields))
	}
}

func envelope(uid types.UID, fields string) string {
	return `{"apiVersion":"config.karmada.io/v1alpha1","kind":"ResourceInterpreterContext","response":{"uid":"` + string(uid) + `",` + fields + `}}`
}

// layer is a running layer with a clock that stands still.
type layer struct {
	*webhook.Webhooks
	t     *testing.T
	clock *testingclock.FakePassiveClock
	calls chan webhook.Call
}

func start(t *testing.T, o webhook.Options) *layer {
	t.Helper()
	l := &layer{t: t, clock: testingclock.NewFakePassiveClock(time.Unix(1_800_000_000, 0)), calls: make(chan webhook.Call, 1000)}
	o.Clock = l.clock
	o.Called = func(c webhook.Call) { l.calls <- c }
	l.Webhooks = webhook.New(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("webhooks: %v", err)
			}
		case <-time.After(timeout):
			t.Error("calls do not end")
		}
	})
	return l
}

// called waits for the end of a call.
func (l *layer) called() webhook.Call {
	l.t.Helper()
	select {
	case c := <-l.calls:
		return c
	case <-time.After(timeout):
		l.t.Fatal("no call came to its end")
		return webhook.Call{}
	}
}

// awaitAnswer asks until there is an answer or a fault.
func awaitAnswer[T any](l *layer, ask func() (T, error)) (T, error) {
	l.t.Helper()
	out, err := ask()
	if _, awaits := kinds.Awaits(err); !awaits {
		return out, err
	}
	l.called()
	out, err = ask()
	if _, awaits := kinds.Awaits(err); awaits {
		l.t.Fatalf("the call has ended, and its answer is not there: %v", err)
	}
	return out, err
}

// hookFor is a webhook that is asked everything about widgets. It has the longest
// time to answer that there is: a machine may be slow.
func hookFor(s *server) configv1alpha1.ResourceInterpreterWebhook {
	at := s.URL + "/interpret"
	return configv1alpha1.ResourceInterpreterWebhook{
		Name:         "widgets.example.com",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &at, CABundle: s.authority.bundle()},
		Rules: []configv1alpha1.RuleWithOperations{{
			Operations: []configv1alpha1.InterpreterOperation{configv1alpha1.InterpreterOperationAll},
			Rule:       configv1alpha1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"}, Kinds: []string{"Widget"}},
		}},
		InterpreterContextVersions: []string{"v1alpha1"},
		TimeoutSeconds:             ptr.To[int32](30),
	}
}

func configuration(name string, hooks ...configv1alpha1.ResourceInterpreterWebhook) *configv1alpha1.ResourceInterpreterWebhookConfiguration {
	return &configv1alpha1.ResourceInterpreterWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Generation: 1},
		Webhooks:   hooks,
	}
}

// use configures one webhook.
func (l *layer) use(hooks ...configv1alpha1.ResourceInterpreterWebhook) {
	l.Use([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{configuration("test", hooks...)})
}

var widgets = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

func widget(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `{apiVersion: example.com/v1, kind: Widget, metadata: {namespace: shop, name: `+name+`, resourceVersion: "7", managedFields: [{manager: m}]}, spec: {size: 3}}`)
}

// text is an error's, empty for none. That an answer is on its way is no text to
// compare.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// retryAfter is when err says to ask again.
func retryAfter(t *testing.T, err error) time.Duration {
	t.Helper()
	var fault *webhook.Fault
	if !errors.As(err, &fault) {
		t.Fatalf("%v is no fault of a webhook", err)
	}
	return fault.RetryAfter()
}
