package webhook_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/interpreters/webhook"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

type handler = func(http.ResponseWriter, *http.Request, *configv1alpha1.ResourceInterpreterRequest)

// Whatever a server does, asking it ends in time and in an error that names it.
func TestFaultsOnTheWay(t *testing.T) {
	cases := map[string]struct {
		handle handler
		change func(*configv1alpha1.ResourceInterpreterWebhook)
		want   string
	}{
		"a server that hangs": {
			handle: func(_ http.ResponseWriter, r *http.Request, _ *configv1alpha1.ResourceInterpreterRequest) {
				<-r.Context().Done()
			},
			want: "no answer within 1s",
		},
		"a server that drips": {
			handle: func(w http.ResponseWriter, r *http.Request, _ *configv1alpha1.ResourceInterpreterRequest) {
				tick := time.NewTicker(20 * time.Millisecond)
				defer tick.Stop()
				for r.Context().Err() == nil {
					_, _ = io.WriteString(w, " ")
					w.(http.Flusher).Flush()
					<-tick.C
				}
			},
			want: "no answer within 1s",
		},
		"a server that redirects": {
			handle: func(w http.ResponseWriter, r *http.Request, _ *configv1alpha1.ResourceInterpreterRequest) {
				http.Redirect(w, r, "/interpret/elsewhere", http.StatusTemporaryRedirect)
			},
			want: "it answered with status 307",
		},
		"a server that fails": {
			handle: func(w http.ResponseWriter, _ *http.Request, _ *configv1alpha1.ResourceInterpreterRequest) {
				http.Error(w, "with a secret in its body", http.StatusInternalServerError)
			},
			want: "it answered with status 500",
		},
		"a server that hangs up": {
			handle: func(http.ResponseWriter, *http.Request, *configv1alpha1.ResourceInterpreterRequest) {
				panic(http.ErrAbortHandler)
			},
			want: "EOF",
		},
		"a server that hangs up in the middle": {
			handle: func(w http.ResponseWriter, _ *http.Request, _ *configv1alpha1.ResourceInterpreterRequest) {
				w.Header().Set("Content-Length", "1000")
				_, _ = io.WriteString(w, "{")
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			},
			want: "read its answer: unexpected EOF",
		},
		"a server with a huge header": {
			handle: func(w http.ResponseWriter, _ *http.Request, _ *configv1alpha1.ResourceInterpreterRequest) {
				w.Header().Set("X", strings.Repeat("x", 1<<20))
			},
			want: "net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 65536 bytes; aborted",
		},
		"an answer that is compressed": {
			handle: func(w http.ResponseWriter, _ *http.Request, _ *configv1alpha1.ResourceInterpreterRequest) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = io.WriteString(w, "\x1f\x8b")
			},
			want: `its answer cannot be read: invalid character '\x1f' looking for beginning of value`,
		},
		"a server of another authority": {
			handle: reply(`"healthy":true`),
			change: func(h *configv1alpha1.ResourceInterpreterWebhook) { h.ClientConfig.CABundle = nil },
			want:   "tls: failed to verify certificate: x509: certificate signed by unknown authority",
		},
		"an authority that is none": {
			change: func(h *configv1alpha1.ResourceInterpreterWebhook) { h.ClientConfig.CABundle = []byte("none") },
			want:   "clientConfig.caBundle holds no certificate",
		},
		"a server that is not encrypted": {
			change: func(h *configv1alpha1.ResourceInterpreterWebhook) {
				h.ClientConfig.URL = ptr.To(strings.Replace(*h.ClientConfig.URL, "https:", "http:", 1))
			},
			want: "clientConfig.url must start with https://: objects are not sent in the clear",
		},
		"credentials in the address": {
			change: func(h *configv1alpha1.ResourceInterpreterWebhook) {
				h.ClientConfig.URL = ptr.To(strings.Replace(*h.ClientConfig.URL, "https://", "https://user:password@", 1))
			},
			want: "clientConfig.url must have neither a user, nor a query, nor a fragment",
		},
		"an address where clouds keep credentials": {
			change: func(h *configv1alpha1.ResourceInterpreterWebhook) {
				h.ClientConfig.URL = ptr.To("https://169.254.169.254/latest")
			},
			want: "dial: 169.254.169.254:443 is a link-local or reserved address",
		},
		"no address": {
			change: func(h *configv1alpha1.ResourceInterpreterWebhook) { h.ClientConfig.URL = nil },
			want:   "clientConfig has neither service nor url",
		},
		"another version of questions": {
			change: func(h *configv1alpha1.ResourceInterpreterWebhook) { h.InterpreterContextVersions = []string{"v2"} },
			want:   "does not understand version v1alpha1 of questions",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tc.handle)
			h := hookFor(s)
			if strings.HasPrefix(tc.want, "no answer") { // the others have time, however slow the machine is
				h.TimeoutSeconds = ptr.To[int32](1)
			}
			if tc.change != nil {
				tc.change(&h)
			}
			l := start(t, webhook.Options{})
			l.use(h)
			_, err := awaitAnswer(l, func() (bool, error) { return l.Rules(widgets).Health(widget(t, "a")) })
			if want := "webhook test/widgets.example.com: " + tc.want; text(err) != want {
				t.Errorf("error\n got %v\nwant %s", err, want)
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	s := serve(t, reply(`"healthy":true`))
	h := hookFor(s)
	s.Close()
	l := start(t, webhook.Options{})
	l.use(h)
	_, err := awaitAnswer(l, func() (bool, error) { return l.Rules(widgets).Health(widget(t, "a")) })
	if want := "webhook test/widgets.example.com: dial: connect: connection refused"; text(err) != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

// A proxy of the environment would see the objects.
func TestNoProxyFromTheEnvironment(t *testing.T) {
	var strayed atomic.Bool
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Store(true) }))
	t.Cleanup(proxy.Close)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	t.Setenv("NO_PROXY", "")
	s := serve(t, reply(`"healthy":true`))
	l := start(t, webhook.Options{Resolve: func(context.Context, string, string, int32) (string, error) { return s.Listener.Addr().String(), nil }})
	h := hookFor(s)
	h.ClientConfig.URL = ptr.To("https://example.com/interpret") // not on this machine, where proxies are never asked
	h.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: "hooks", Name: "widgets"}
	l.use(h)
	// The certificate is for this machine, not for the service: enough to see who was asked.
	_, err := awaitAnswer(l, func() (bool, error) { return l.Rules(widgets).Health(widget(t, "a")) })
	if strayed.Load() || !strings.Contains(text(err), "wanted to match widgets.hooks.svc") {
		t.Errorf("the proxy was asked: %v; error = %v, want one about the certificate", strayed.Load(), err)
	}
}

// The same question is sent once, whoever asks, and however the object was
// stored in between.
func TestSameQuestionSameAnswer(t *testing.T) {
	s := serve(t, reply(`"healthy":true`))
	l := start(t, webhook.Options{})
	l.use(hookFor(s))
	ask := func(change func(kinds.Object)) (bool, error) {
		obj := widget(t, "a")
		change(obj)
		return awaitAnswer(l, func() (bool, error) { return l.Rules(widgets).Health(obj) })
	}
	for name, tc := range map[string]struct {
		change func(kinds.Object)
		asked  int
	}{
		"the object":         {func(kinds.Object) {}, 1},
		"once more":          {func(kinds.Object) {}, 1},
		"stored again":       {func(o kinds.Object) { o.SetResourceVersion("8") }, 1},
		"without its owners": {func(o kinds.Object) { o.SetManagedFields(nil) }, 1},
	} {
		if healthy, err := ask(tc.change); !healthy || err != nil || s.asked() != tc.asked {
			t.Errorf("%s: healthy = %v, %v after %d calls, want %d", name, healthy, err, s.asked(), tc.asked)
		}
	}
	if _, err := ask(func(o kinds.Object) { o.SetLabels(map[string]string{"a": "b"}) }); err != nil || s.asked() != 2 {
		t.Errorf("another object: %v after %d calls, want 2", err, s.asked())
	}
}

func TestWhenToAskAgain(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request, asked *configv1alpha1.ResourceInterpreterRequest) {
		<-release
		reply(`"healthy":true`)(w, r, asked)
	})
	l := start(t, webhook.Options{})
	l.use(hookFor(s))
	var got []time.Duration
	for _, elapsed := range []time.Duration{0, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, time.Minute} {
		l.clock.SetTime(time.Unix(1_800_000_000, 0).Add(elapsed))
		_, err := l.Rules(widgets).Health(widget(t, "a"))
		after, awaits := kinds.Awaits(err)
		if !awaits || text(err) != "waits for the answer of webhook test/widgets.example.com" {
			t.Fatalf("error = %v", err)
		}
		got = append(got, after)
	}
	want := []time.Duration{10 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond, time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ask again after (-want +got):\n%s", diff)
	}
	close(release)
	l.called()
	if healthy, err := l.Rules(widgets).Health(widget(t, "a")); !healthy || err != nil {
		t.Errorf("in the end: %v, %v", healthy, err)
	}
}

// What was asked in vain is left alone longer and longer, and forgotten when the
// configuration changes.
func TestBackOff(t *testing.T) {
	var works atomic.Bool
	s := serve(t, func(w http.ResponseWriter, r *http.Request, asked *configv1alpha1.ResourceInterpreterRequest) {
		if !works.Load() {
			http.Error(w, "", http.StatusServiceUnavailable)
			return
		}
		reply(`"healthy":true`)(w, r, asked)
	})
	l := start(t, webhook.Options{})
	l.use(hookFor(s))
	ask := func() (bool, error) { return l.Rules(widgets).Health(widget(t, "a")) }
	var got []time.Duration
	for range 11 {
		_, err := awaitAnswer(l, ask)
		wait := retryAfter(t, err)
		got = append(got, wait)
		l.clock.SetTime(l.clock.Now().Add(wait - time.Nanosecond))
		if _, err := ask(); retryAfter(t, err) != time.Nanosecond {
			t.Fatalf("just before its time: %v", err)
		}
		l.clock.SetTime(l.clock.Now().Add(time.Nanosecond))
	}
	s1 := time.Second
	want := []time.Duration{s1, 2 * s1, 4 * s1, 8 * s1, 16 * s1, 32 * s1, 64 * s1, 128 * s1, 256 * s1, 300 * s1, 300 * s1}
	if diff := cmp.Diff(want, got); diff != "" || s.asked() != 11 {
		t.Errorf("%d calls; pauses (-want +got):\n%s", s.asked(), diff)
	}
	if _, err := awaitAnswer(l, ask); err == nil {
		t.Fatal("it does not work yet")
	}
	works.Store(true)
	edited := configuration("test", hookFor(s))
	edited.Generation = 2
	l.Use([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{edited})
	if healthy, err := awaitAnswer(l, ask); !healthy || err != nil {
		t.Errorf("at once after an edit: %v, %v", healthy, err)
	}
}

// A webhook slower than statuses change is sent one question at a time about an
// object, and its answers are of use: that to the question before is served to the
// newest one, which is sent in its turn. What is retained of another spec, and
// what a template of another spec adds up to, is never served.
func TestSlowerThanStatuses(t *testing.T) {
	answer := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request, asked *configv1alpha1.ResourceInterpreterRequest) {
		<-answer
		reported := "nothing"
		if o := asked.ObservedObject; o != nil {
			reported = string(o.Raw)
		} else if len(asked.AggregatedStatus) > 0 {
			reported = string(asked.AggregatedStatus[0].Status.Raw)
		}
		patch, _ := json.Marshal([]map[string]any{{"op": "add", "path": "/status", "value": map[string]any{"said": reported}}})
		reply(`"patchType":"JSONPatch","patch":"`+base64.StdEncoding.EncodeToString(patch)+`"`)(w, r, asked)
	})
	defer close(answer)
	l := start(t, webhook.Options{})
	l.use(hookFor(s))
	// Each asks about the nth status, of a spec of the given size, and says what is
	// answered.
	asks := map[string]func(size, n int) string{
		"retain": func(size, n int) string {
			observed := widget(t, "a")
			observed.Object["spec"], observed.Object["status"] = map[string]any{"size": int64(size)}, int64(n)
			out, err := l.Rules(widgets).Retain(widget(t, "a"), observed)
			if err != nil {
				return text(err)
			}
			reported, _, _ := unstructured.NestedString(out.Object, "status", "said")
			var got struct {
				Spec   struct{ Size int }
				Status int
			}
			if err := json.Unmarshal([]byte(reported), &got); err != nil {
				t.Error(err)
			}
			return fmt.Sprintf("size %d, status %d", got.Spec.Size, got.Status)
		},
		"aggregate": func(size, n int) string {
			template := widget(t, "a")
			template.Object["spec"], template.Object["status"] = map[string]any{"size": int64(size)}, map[string]any{"total": int64(n)}
			item := workv1alpha2.AggregatedStatusItem{ClusterName: "m", Status: &runtime.RawExtension{Raw: []byte(strconv.Itoa(n))}}
			status, err := l.Rules(widgets).Aggregate(template, []workv1alpha2.AggregatedStatusItem{item})
			if _, awaits := kinds.Awaits(err); err != nil && !awaits || status == nil {
				return text(err)
			}
			reported := fmt.Sprintf("size %d, status %v", size, status["said"])
			if err != nil {
				reported += ", " + text(err)
			}
			return reported
		},
	}
	const waits = "waits for the answer of webhook test/widgets.example.com"
	for name, ask := range asks {
		moment := ""
		if name == "aggregate" {
			moment = ", " + waits
		}
		before := s.asked()
		check := func(size, n int, want string) {
			t.Helper()
			if got := ask(size, n); got != want {
				t.Errorf("%s: size %d, status %d: %q, want %q", name, size, n, got, want)
			}
		}
		check(1, 1, waits)
		check(1, 2, waits)
		check(1, 3, waits)
		answer <- struct{}{}
		l.called()
		check(1, 4, "size 1, status 1"+moment)
		check(1, 5, "size 1, status 1"+moment)
		check(2, 5, waits)
		answer <- struct{}{}
		answer <- struct{}{}
		l.called()
		l.called()
		check(1, 4, "size 1, status 4")
		check(2, 5, "size 2, status 5")
		check(1, 6, "size 1, status 4"+moment)
		answer <- struct{}{}
		l.called()
		check(1, 6, "size 1, status 6")
		check(1, 7, waits)
		answer <- struct{}{}
		l.called()
		if sent := s.asked() - before; sent != 5 {
			t.Errorf("%s: %d questions were sent, want 5", name, sent)
		}
	}
}

// A webhook that hangs keeps only its own objects waiting, however many.
func TestOneThatHangs(t *testing.T) {
	var most, now atomic.Int32
	hangs := serve(t, func(_ http.ResponseWriter, r *http.Request, _ *configv1alpha1.ResourceInterpreterRequest) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		<-r.Context().Done()
	})
	works := serve(t, reply(`"healthy":true`))
	l := start(t, webhook.Options{PerHook: 3, Calls: 3})
	bad, good := hookFor(hangs), hookFor(works)
	bad.Name, bad.Rules[0].Kinds = "bad.example.com", []string{"Gadget"}
	l.use(bad, good)
	gadgets := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	for i := range 100 {
		gadget := object(t, fmt.Sprintf(`{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g%d}}`, i))
		if _, err := l.Rules(gadgets).Health(gadget); err == nil {
			t.Fatal("nobody can have answered")
		}
	}
	for i := range 20 {
		if healthy, err := awaitAnswer(l, func() (bool, error) { return l.Rules(widgets).Health(widget(t, fmt.Sprint("w", i))) }); !healthy || err != nil {
			t.Fatalf("one that works: %v, %v", healthy, err)
		}
	}
	if most.Load() > 3 {
		t.Errorf("%d calls at the same time, at most 3 were allowed", most.Load())
	}
}

// Removing a webhook ends its calls, and makes its questions those of the next.
func TestAWebhookThatGoes(t *testing.T) {
	hung, ended := make(chan struct{}), make(chan struct{})
	hangs := serve(t, func(_ http.ResponseWriter, r *http.Request, _ *configv1alpha1.ResourceInterpreterRequest) {
		close(hung)
		<-r.Context().Done()
		close(ended)
	})
	works := serve(t, reply(`"healthy":false`))
	l := start(t, webhook.Options{})
	first, second := configuration("a", hookFor(hangs)), configuration("b", hookFor(works))
	l.Use([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{second, first})
	before := l.Rules(widgets)
	if _, err := before.Health(widget(t, "a")); text(err) != "waits for the answer of webhook a/widgets.example.com" {
		t.Fatalf("error = %v", err)
	}
	await(t, hung, "the call")
	affects, some := l.Use([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{second})
	if !some || !affects(widgets) || affects(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}) {
		t.Errorf("changed: %v, widgets: %v", some, affects(widgets))
	}
	await(t, ended, "the end of the call")
	if _, err := before.Health(widget(t, "a")); err == nil {
		t.Error("an old rule answers")
	}
	if healthy, err := awaitAnswer(l, func() (bool, error) { return l.Rules(widgets).Health(widget(t, "a")) }); healthy || err != nil {
		t.Errorf("the next: %v, %v", healthy, err)
	}
	if _, some := l.Use([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{second}); some {
		t.Error("the same once more is a change")
	}
	if _, err := l.Rules(widgets).Health(widget(t, "a")); err != nil || works.asked() != 1 {
		t.Errorf("kept its answers: %v after %d calls", err, works.asked())
	}
}

func await(t *testing.T, c chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(timeout):
		t.Fatalf("%s does not come", what)
	}
}

// Answers are kept while there is room: those asked for last.
func TestCapacity(t *testing.T) {
	for name, o := range map[string]webhook.Options{
		"entries": {Entries: 2},
		"bytes":   {Bytes: 1500}, // two answers of about 650
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, reply(`"healthy":true`))
			l := start(t, o)
			l.use(hookFor(s))
			var calls []int
			for _, obj := range []string{"a", "b", "a", "c", "a", "b"} {
				if _, err := awaitAnswer(l, func() (bool, error) { return l.Rules(widgets).Health(widget(t, obj)) }); err != nil {
					t.Fatal(err)
				}
				calls = append(calls, s.asked())
			}
			if diff := cmp.Diff([]int{1, 2, 2, 3, 3, 4}, calls); diff != "" {
				t.Errorf("calls after each question (-want +got):\n%s", diff)
			}
		})
	}
}

// What is too much to wait is left to who asks again, and comes to its turn.
func TestQueueThatIsFull(t *testing.T) {
	s := serve(t, reply(`"healthy":true`))
	l := start(t, webhook.Options{Queue: 2, PerHook: 1})
	l.use(hookFor(s))
	left := map[string]bool{}
	for i := range 50 {
		left[fmt.Sprint("w", i)] = true
	}
	deadline := time.Now().Add(timeout)
	for len(left) > 0 && time.Now().Before(deadline) {
		for name := range left {
			if _, err := l.Rules(widgets).Health(widget(t, name)); err == nil {
				delete(left, name)
			}
		}
	}
	if len(left) > 0 || s.asked() != 50 {
		t.Errorf("%d have no answer after %d calls", len(left), s.asked())
	}
}

// Many ask at once while webhooks come and go.
func TestTogether(t *testing.T) {
	s := serve(t, reply(`"replicas":4`))
	l := start(t, webhook.Options{PerHook: 4, Entries: 16})
	l.use(hookFor(s))
	stop := make(chan struct{})
	var edits, asks sync.WaitGroup
	edits.Go(func() {
		for generation := int64(1); ; generation++ {
			select {
			case <-stop:
				return
			case <-l.calls: // an edit for every call
			}
			c := configuration("test", hookFor(s))
			c.Generation = generation % 3
			l.Use([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{c})
		}
	})
	for worker := range 8 {
		asks.Go(func() {
			for i := range 200 {
				n, _, err := l.Rules(widgets).Replicas(widget(t, fmt.Sprint("w", worker, i%4)))
				if _, awaits := kinds.Awaits(err); !awaits && (err != nil || n != 4) {
					t.Errorf("replicas = %d, %v", n, err)
				}
			}
		})
	}
	asks.Wait()
	close(stop)
	edits.Wait()
}

func TestServices(t *testing.T) {
	service := func(name string, spec corev1.ServiceSpec) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "hooks", Name: name}, Spec: spec}
	}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		service("inside", corev1.ServiceSpec{ClusterIP: "10.0.0.1"}),
		service("six", corev1.ServiceSpec{ClusterIP: "fd00::1"}),
		service("headless", corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}),
		service("outside", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "hooks.example.com"}),
	).Build()
	got := map[string]string{}
	for _, name := range []string{"inside", "six", "headless", "outside", "unknown"} {
		at, err := webhook.Services(hub)(t.Context(), "hooks", name, 8443)
		if err != nil {
			t.Fatal(err)
		}
		got[name] = at
	}
	want := map[string]string{
		"inside":   "10.0.0.1:8443",
		"six":      "[fd00::1]:8443",
		"headless": "headless.hooks.svc:8443",
		"outside":  "hooks.example.com:8443",
		"unknown":  "unknown.hooks.svc:8443",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

// A Service is called by its own name, wherever it is, and wins over a URL.
func TestService(t *testing.T) {
	var host atomic.Pointer[string]
	s := serve(t, func(w http.ResponseWriter, r *http.Request, asked *configv1alpha1.ResourceInterpreterRequest) {
		host.Store(ptr.To(r.TLS.ServerName + " " + r.Host + r.URL.Path))
		reply(`"healthy":true`)(w, r, asked)
	}, "widgets.hooks.svc")
	var lookups []any
	l := start(t, webhook.Options{Resolve: func(_ context.Context, namespace, name string, port int32) (string, error) {
		lookups = append(lookups, namespace, name, port)
		if name == "unread" {
			return "", errors.New("read service hooks/unread: not today")
		}
		return s.Listener.Addr().String(), nil
	}})
	ask := func(service string) (bool, error) {
		h := hookFor(s)
		h.ClientConfig.URL = ptr.To("https://127.0.0.1:1/never")
		h.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: "hooks", Name: service, Path: ptr.To("/v1"), Port: ptr.To[int32](8443)}
		l.Use([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{configuration(service, h)})
		return awaitAnswer(l, func() (bool, error) { return l.Rules(widgets).Health(widget(t, "a")) })
	}
	if healthy, err := ask("widgets"); !healthy || err != nil {
		t.Errorf("the service that the certificate is for: %v, %v", healthy, err)
	}
	if got, want := ptr.Deref(host.Load(), ""), "widgets.hooks.svc widgets.hooks.svc:8443/v1"; got != want {
		t.Errorf("was called as %q, want %q", got, want)
	}
	for service, want := range map[string]string{
		"gadgets": "tls: failed to verify certificate: x509: certificate is valid for widgets.hooks.svc, not gadgets.hooks.svc",
		"unread":  "read service hooks/unread: not today",
	} {
		if _, err := ask(service); text(err) != "webhook "+service+"/widgets.example.com: "+want {
			t.Errorf("error\n got %v\nwant %s", err, want)
		}
	}
	if diff := cmp.Diff([]any{"hooks", "widgets", int32(8443)}, lookups[:3]); diff != "" {
		t.Errorf("looked up (-want +got):\n%s", diff)
	}
}

func TestRules(t *testing.T) {
	s := serve(t, reply(`"healthy":true`))
	rule := func(ops []configv1alpha1.InterpreterOperation, groups, versions, kinds string) configv1alpha1.ResourceInterpreterWebhook {
		h := hookFor(s)
		h.Rules = []configv1alpha1.RuleWithOperations{{Operations: ops, Rule: configv1alpha1.Rule{
			APIGroups: strings.Split(groups, ","), APIVersions: strings.Split(versions, ","), Kinds: strings.Split(kinds, ","),
		}}}
		return h
	}
	all := []configv1alpha1.InterpreterOperation{"*"}
	health := []configv1alpha1.InterpreterOperation{"InterpretHealth", "Retain"}
	type known struct{ Replicas, Components, Revise, Retain, Reflect, Health, Aggregate, Dependencies bool }
	cases := map[string]struct {
		hook configv1alpha1.ResourceInterpreterWebhook
		kind schema.GroupVersionKind
		want known
	}{
		"everything about everything": {rule(all, "*", "*", "*"), widgets, known{true, true, true, true, true, true, true, true}},
		"some operations":             {rule(health, "*", "*", "*"), widgets, known{Retain: true, Health: true}},
		"one of several":              {rule(health, "a,example.com", "v1,v2", "X,Widget"), widgets, known{Retain: true, Health: true}},
		"another group":               {rule(all, "apps", "*", "*"), widgets, known{}},
		"another version":             {rule(all, "*", "v2", "*"), widgets, known{}},
		"another kind":                {rule(all, "*", "*", "widget"), widgets, known{}},
		"the core group":              {rule(health, "", "v1", "Pod"), schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, known{Retain: true, Health: true}},
		"no rules": {func() configv1alpha1.ResourceInterpreterWebhook {
			h := hookFor(s)
			h.Rules = nil
			return h
		}(), widgets, known{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := webhook.New(webhook.Options{})
			w.Use([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{configuration("test", tc.hook)})
			r := w.Rules(tc.kind)
			got := known{
				r.Replicas != nil, r.Components != nil, r.Revise != nil, r.Retain != nil,
				r.Reflect != nil, r.Health != nil, r.Aggregate != nil, r.Dependencies != nil,
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}
