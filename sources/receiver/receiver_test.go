package receiver_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/sources/receiver"
)

const token = "s3cret-of-the-hook"

// bench is a Reconciler with a hub in memory, whose sources' reconciles are counted.
type bench struct {
	*testing.T
	hub   client.Client
	clock *clocktesting.FakeClock
	loop  *receiver.Reconciler
	// asked are the objects that were asked to reconcile, in turn.
	asked chan string
	fails bool
}

func newBench(t *testing.T, opts receiver.Options, objects ...client.Object) *bench {
	t.Helper()
	b := &bench{T: t, clock: clocktesting.NewFakeClock(time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)), asked: make(chan string, 1000)}
	b.hub = fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(&notificationv1.Receiver{}).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if b.fails {
					return fmt.Errorf("the hub is away")
				}
				err := c.Patch(ctx, obj, patch, opts...)
				if err == nil && obj.GetAnnotations()[meta.ReconcileRequestAnnotation] != "" {
					b.asked <- obj.GetNamespace() + "/" + obj.GetName()
				}
				return err
			},
		}).Build()
	opts.Clock = b.clock
	if opts.Address == "" {
		opts.Address = "127.0.0.1:0"
	}
	b.loop = receiver.New(b.hub, opts)
	return b
}

// reconcile runs the loop for the Receiver hook, and returns it.
func (b *bench) reconcile() *notificationv1.Receiver {
	b.Helper()
	key := client.ObjectKey{Namespace: "shop", Name: "hook"}
	if _, err := b.loop.Reconcile(b.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		b.Fatal(err)
	}
	out := &notificationv1.Receiver{}
	if err := b.hub.Get(b.Context(), key, out); err != nil {
		b.Fatal(err)
	}
	return out
}

// send returns what the server answers.
func (b *bench) send(method, path, body string, headers ...string) string {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), method, path, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.loop.Handler().ServeHTTP(w, r)
	return fmt.Sprintf("%d %s", w.Code, strings.TrimSpace(w.Body.String()))
}

// drain returns what was asked to reconcile so far.
func (b *bench) drain() []string {
	var out []string
	for {
		select {
		case name := <-b.asked:
			out = append(out, name)
		default:
			return out
		}
	}
}

func secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "token"}, Data: map[string][]byte{"token": []byte(token)}}
}

func hook(kind string, change ...func(*notificationv1.Receiver)) *notificationv1.Receiver {
	out := &notificationv1.Receiver{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hook", UID: "1", Generation: 1}}
	out.Spec.Type, out.Spec.SecretRef = kind, &meta.LocalObjectReference{Name: "token"}
	out.Spec.Resources = []notificationv1.ReceiverResource{{CrossNamespaceObjectReference: notificationv1.CrossNamespaceObjectReference{Kind: "GitRepository", Name: "app"}}}
	for _, c := range change {
		c(out)
	}
	return out
}

func repository(namespace, name, branch string) *sourcev1.GitRepository {
	return &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       sourcev1.GitRepositorySpec{URL: "https://example.com/shop/app", Reference: &sourcev1.GitRepositoryRef{Branch: branch}},
	}
}

func signature(body string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

const push = `{"ref":"refs/heads/main","repository":{"full_name":"shop/app"}}`

// TestAReceiverSaysWhereItIs: its path is that of Flux, and its condition says what is wrong.
func TestAReceiverSaysWhereItIs(t *testing.T) {
	for name, tc := range map[string]struct {
		hook    *notificationv1.Receiver
		secret  *corev1.Secret
		address string
		crosses bool
		want    string
	}{
		"of a forge":               {hook: hook("github"), secret: secret(), want: "True Succeeded Receiver initialized for path: PATH"},
		"of a type without proofs": {hook: hook("generic"), secret: secret(), want: "True Succeeded Receiver initialized for path: PATH; requests of this type are not signed: keep the path secret"},
		"of a kind that is not served": {hook: hook("github", func(r *notificationv1.Receiver) { r.Spec.Resources[0].Kind = "HelmRepository" }), secret: secret(),
			want: "True Succeeded Receiver initialized for path: PATH; nobody looks at HelmRepository/app: such kinds are not served yet"},
		"of what does not exist": {hook: hook("github", func(r *notificationv1.Receiver) { r.Spec.Resources[0].Name = "gone" }), secret: secret(),
			want: "True Succeeded Receiver initialized for path: PATH; nobody looks at GitRepository/gone, which does not exist"},
		"of a Bucket that does not exist": {hook: hook("github", func(r *notificationv1.Receiver) { r.Spec.Resources[0].Kind = "Bucket" }), secret: secret(),
			want: "True Succeeded Receiver initialized for path: PATH; nobody looks at Bucket/app, which does not exist"},
		"of all there are, which is none": {hook: hook("github", func(r *notificationv1.Receiver) {
			r.Spec.Resources[0].Kind, r.Spec.Resources[0].Name = "OCIRepository", "*"
		}), secret: secret(), want: "True Succeeded Receiver initialized for path: PATH"},
		"of another namespace": {hook: hook("github", func(r *notificationv1.Receiver) { r.Spec.Resources[0].Namespace = "other" }), secret: secret(),
			want: "True Succeeded Receiver initialized for path: PATH; nobody looks at GitRepository/other/app: to look into other namespaces an administrator starts the control plane with --allow-cross-namespace-references"},
		"of another namespace, where that may be": {hook: hook("github", func(r *notificationv1.Receiver) { r.Spec.Resources[0].Namespace = "other" }), secret: secret(), crosses: true,
			want: "True Succeeded Receiver initialized for path: PATH"},
		"without its Secret":      {hook: hook("github"), want: "False TokenNotFound the Secret shop/token of spec.secretRef is not there: create it, with the key token"},
		"with a Secret of others": {hook: hook("github"), secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "token"}}, want: "False TokenNotFound the Secret shop/token of spec.secretRef has no token: add that key"},
		"where nobody listens":    {hook: hook("github"), secret: secret(), address: "none", want: "False NotListening the control plane listens for no webhooks: start it with --receiver-address, such as :9292"},
		"with a filter that is none": {hook: hook("github", func(r *notificationv1.Receiver) { r.Spec.ResourceFilter = "res.metadata.name ==" }), secret: secret(),
			want: "False InvalidCELExpression spec.resourceFilter: invalid expression: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER} (line 1, character 21)"},
		"with a filter of claims that there are not": {hook: hook("github", func(r *notificationv1.Receiver) { r.Spec.Resources[0].Filter = "claims.sub == 'x'" }), secret: secret(),
			want: "False InvalidCELExpression spec.resources[0].filter: invalid expression: undeclared reference to 'claims'"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{tc.hook, repository("shop", "app", "main"), repository("other", "app", "main")}
			if tc.secret != nil {
				objects = append(objects, tc.secret)
			}
			b := newBench(t, receiver.Options{AllowCrossNamespace: tc.crosses}, objects...)
			if tc.address == "none" {
				b.loop = receiver.New(b.hub, receiver.Options{Clock: b.clock})
			}
			got := b.reconcile()
			var text []string
			for _, c := range got.Status.Conditions {
				if c.Type == meta.ReadyCondition {
					text = append(text, string(c.Status), c.Reason, c.Message)
				}
			}
			want := strings.ReplaceAll(tc.want, "PATH", got.GetWebhookPath(token))
			if diff := cmp.Diff(want, strings.Join(text, " ")); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
			if ready := strings.HasPrefix(tc.want, "True"); (got.Status.WebhookPath == got.GetWebhookPath(token)) != ready {
				t.Errorf("status.webhookPath is %q", got.Status.WebhookPath)
			}
		})
	}
}

// TestRequests: who may send wakes what the Receiver names, and nobody else is told anything.
func TestRequests(t *testing.T) {
	path := hook("github").GetWebhookPath(token)
	signed := []string{"X-GitHub-Event", "push", "X-Hub-Signature-256", signature(push)}
	every := func(r *notificationv1.Receiver) {
		r.Spec.Resources[0].Name, r.Spec.Resources[0].MatchLabels = "*", map[string]string{"app": "app"}
	}
	for name, tc := range map[string]struct {
		change  func(*notificationv1.Receiver)
		opts    receiver.Options
		method  string
		path    string
		body    string
		headers []string
		want    string
		asked   []string
	}{
		"a push":                   {headers: signed, want: "200 1 of 1 objects are looked at", asked: []string{"shop/app"}},
		"another method":           {method: http.MethodGet, headers: signed, want: "405 send POST"},
		"another path":             {path: "/hook/" + strings.Repeat("0", 64), headers: signed, want: "404 there is nothing here"},
		"the root":                 {path: "/", headers: signed, want: "404 there is nothing here"},
		"a longer path":            {path: path + "/x", headers: signed, want: "404 there is nothing here"},
		"without a signature":      {want: "401 the request is not signed with the token of the Receiver's Secret: the header X-Hub-Signature-256 is missing"},
		"with that of another one": {headers: []string{"X-GitHub-Event", "push", "X-Hub-Signature-256", signature("x")}, want: "401 the request is not signed with the token of the Receiver's Secret"},
		"a body that is too large": {body: strings.Repeat("x", 64<<10+1), headers: signed, want: "413 the body has more than 65536 bytes"},
		"no JSON":                  {body: "x", headers: []string{"X-GitHub-Event", "push", "X-Hub-Signature-256", signature("x")}, want: "400 the request is none of the Receiver's type: its body is not JSON"},
		"an event that is not wanted": {change: func(r *notificationv1.Receiver) { r.Spec.Events = []string{"release"} }, headers: signed,
			want: `200 the event "push" is not among spec.events: nothing is looked at`},
		"all with a label": {change: every, headers: signed, want: "200 1 of 1 objects are looked at", asked: []string{"shop/app"}},
		"all that follow the branch": {change: func(r *notificationv1.Receiver) { r.Spec.Resources[0].Name = "*" }, headers: signed,
			want: "200 1 of 2 objects are looked at", asked: []string{"shop/app"}},
		"one of another namespace": {change: func(r *notificationv1.Receiver) { r.Spec.Resources[0].Namespace = "other" }, headers: signed, want: "200 0 of 0 objects are looked at; the condition of the Receiver names others at which nobody looks"},
		"one of another namespace, where that may be": {change: func(r *notificationv1.Receiver) { r.Spec.Resources[0].Namespace = "other" }, opts: receiver.Options{AllowCrossNamespace: true},
			headers: signed, want: "200 1 of 1 objects are looked at", asked: []string{"other/app"}},
		"one that is not there": {change: func(r *notificationv1.Receiver) { r.Spec.Resources[0].Name = "gone" }, headers: signed, want: "200 0 of 0 objects are looked at; the condition of the Receiver names others at which nobody looks"},
		"a filter that passes it": {change: func(r *notificationv1.Receiver) {
			r.Spec.ResourceFilter = "req.ref == 'refs/heads/main' && res.kind == 'GitRepository' && res.metadata.labels.app == 'app'"
		}, headers: signed, want: "200 1 of 1 objects are looked at", asked: []string{"shop/app"}},
		"a filter that does not":      {change: func(r *notificationv1.Receiver) { r.Spec.Resources[0].Filter = "req.ref == 'x'" }, headers: signed, want: "200 0 of 1 objects are looked at"},
		"a filter that has no answer": {change: func(r *notificationv1.Receiver) { r.Spec.ResourceFilter = "req.none == 'x'" }, headers: signed, want: "400 a filter of the Receiver has no answer for this request"},
		"a filter that sees too much": {change: func(r *notificationv1.Receiver) { r.Spec.ResourceFilter = "has(res.spec)" }, headers: signed, want: "200 0 of 1 objects are looked at"},
	} {
		t.Run(name, func(t *testing.T) {
			object := hook("github")
			if tc.change != nil {
				tc.change(object)
			}
			b := newBench(t, tc.opts, object, secret(), repository("shop", "app", "main"), repository("shop", "release", "release"), repository("other", "app", "main"))
			b.reconcile()
			at, method, body := path, http.MethodPost, push
			if tc.path != "" {
				at = tc.path
			}
			if tc.method != "" {
				method = tc.method
			}
			if tc.body != "" {
				body = tc.body
			}
			got := b.send(method, at, body, tc.headers...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.asked, b.drain()); diff != "" {
				t.Errorf("asked to reconcile (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAReplayCostsNothing: a request that comes a thousand times asks twice, and is then refused until a second has gone.
func TestAReplayCostsNothing(t *testing.T) {
	b := newBench(t, receiver.Options{}, hook("github"), secret(), repository("shop", "app", "main"))
	path := b.reconcile().Status.WebhookPath
	answers := map[string]int{}
	for range 1000 {
		answers[b.send(http.MethodPost, path, push, "X-GitHub-Event", "push", "X-Hub-Signature-256", signature(push))]++
	}
	want := map[string]int{"200 1 of 1 objects are looked at": 20, "429 too many requests: try again in a second": 980}
	if diff := cmp.Diff(want, answers); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"shop/app"}, b.drain()); diff != "" {
		t.Errorf("asked at once (-want +got):\n%s", diff)
	}
	b.clock.Step(time.Second)
	if got := <-b.asked; got != "shop/app" { // what was pushed during the first fetch is seen, too
		t.Errorf("asked later: %s", got)
	}
	b.clock.Step(10 * time.Second)
	if got := b.drain(); got != nil {
		t.Errorf("asked once more: %v", got)
	}
	if got := b.send(http.MethodPost, path, push, "X-GitHub-Event", "push", "X-Hub-Signature-256", signature(push)); got != "200 1 of 1 objects are looked at" {
		t.Errorf("a later one: %s", got)
	}
}

// TestAReceiverThatIsAnotherByNow: what was ready counts only as long as it is so.
func TestAReceiverThatIsAnotherByNow(t *testing.T) {
	key := client.ObjectKey{Namespace: "shop", Name: "hook"}
	for name, tc := range map[string]struct {
		change func(t *testing.T, b *bench)
		want   string
	}{
		"deleted": {func(t *testing.T, b *bench) { b.do(b.hub.Delete(t.Context(), hook("github"))) }, "404 there is nothing here"},
		"suspended": {func(t *testing.T, b *bench) {
			b.update(key, func(r *notificationv1.Receiver) { r.Spec.Suspend = true })
		}, "503 the Receiver is not ready"},
		"changed": {func(t *testing.T, b *bench) { b.update(key, func(r *notificationv1.Receiver) { r.Generation = 2 }) }, "503 the Receiver is not ready"},
		"another object of its name": {func(t *testing.T, b *bench) {
			b.update(key, func(r *notificationv1.Receiver) { r.UID = types.UID("2") })
		}, "404 there is nothing here"},
		"with another token": {func(t *testing.T, b *bench) {
			other := secret()
			other.Data["token"] = []byte("other")
			b.do(b.hub.Update(t.Context(), other))
		}, "404 there is nothing here"},
		"whose Secret is gone":  {func(t *testing.T, b *bench) { b.do(b.hub.Delete(t.Context(), secret())) }, "404 there is nothing here"},
		"of a hub that is away": {func(_ *testing.T, b *bench) { b.fails = true }, "500 the control plane cannot look at it now: send it again"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, receiver.Options{}, hook("github"), secret(), repository("shop", "app", "main"))
			path := b.reconcile().Status.WebhookPath
			tc.change(t, b)
			if got := b.send(http.MethodPost, path, push, "X-GitHub-Event", "push", "X-Hub-Signature-256", signature(push)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if got := b.drain(); got != nil {
				t.Errorf("asked to reconcile: %v", got)
			}
		})
	}
}

func (b *bench) do(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) update(key client.ObjectKey, change func(*notificationv1.Receiver)) {
	b.Helper()
	object := &notificationv1.Receiver{}
	b.do(b.hub.Get(b.Context(), key, object))
	change(object)
	b.do(b.hub.Update(b.Context(), object))
}
