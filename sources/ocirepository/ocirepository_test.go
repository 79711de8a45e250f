package ocirepository_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/ociserver"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/ocirepository"
)

// canary is the secret that must never show.
const canary = "CANARY-90d4"

var (
	key   = client.ObjectKey{Namespace: "shop", Name: "app"}
	start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
)

// bench is a reconciler between a registry and a fake hub client.
type bench struct {
	t        *testing.T
	hub      client.Client
	writes   int
	events   []string
	store    *artifact.Store
	registry *ociserver.Server
	server   *httptest.Server
	loop     *ocirepository.Reconciler
	clock    *clocktesting.FakePassiveClock
}

// Event records "<type> <reason>: <message>".
func (b *bench) Event(_ runtime.Object, kind, reason, message string) {
	b.events = append(b.events, kind+" "+reason+": "+message)
}

func newBench(t *testing.T, opts ocirepository.Options) *bench {
	t.Helper()
	b := &bench{t: t, registry: ociserver.New(), clock: clocktesting.NewFakePassiveClock(start)}
	b.server = httptest.NewServer(b.registry)
	t.Cleanup(b.server.Close)
	b.hub = fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(&sourcev1.OCIRepository{}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				b.writes++
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	var err error
	if b.store, err = artifact.NewStore(t.TempDir(), artifact.Options{BaseURL: "http://hub/artifacts"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.store.Close() })
	opts.Clock = b.clock
	opts.Jitter = func(d time.Duration) time.Duration { return d }
	if opts.Registries.Egress.Networks == nil {
		opts.Registries.Egress = egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	}
	b.loop = ocirepository.New(b.hub, b.store, b, opts)
	return b
}

func (b *bench) host() string { return b.server.Listener.Addr().String() }

// push pushes files, and returns the digest.
func (b *bench) push(tag string, files map[string]string) string {
	b.t.Helper()
	digest, err := b.registry.Push(b.t.Context(), "app", tag, files, map[string]string{
		"org.opencontainers.image.source":        "https://git.test/app",
		"org.opencontainers.image.revision":      "main@sha1:9f2c8c1d",
		gitopsv1alpha1.CommitSigningKeyKey:       "forged",
		"org.opencontainers.image.title":         "two\nlines",
		"example.com/" + strings.Repeat("k", 20): strings.Repeat("x", 5000),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return digest
}

// create makes the object, changed by edit.
func (b *bench) create(edit func(*sourcev1.OCIRepositorySpec)) {
	b.t.Helper()
	object := &sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 1, CreationTimestamp: metav1.NewTime(start)}}
	object.Spec = sourcev1.OCIRepositorySpec{URL: "oci://" + b.host() + "/app", Insecure: true, Interval: metav1.Duration{Duration: time.Minute}}
	if edit != nil {
		edit(&object.Spec)
	}
	if err := b.hub.Create(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) add(objects ...client.Object) {
	b.t.Helper()
	for _, object := range objects {
		if err := b.hub.Create(b.t.Context(), object); err != nil {
			b.t.Fatal(err)
		}
	}
}

// edit changes the spec, as a new generation.
func (b *bench) edit(edit func(*sourcev1.OCIRepositorySpec)) {
	b.t.Helper()
	object := b.object()
	edit(&object.Spec)
	object.Generation++
	if err := b.hub.Update(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) object() *sourcev1.OCIRepository {
	b.t.Helper()
	object := &sourcev1.OCIRepository{}
	if err := b.hub.Get(b.t.Context(), key, object); err != nil {
		b.t.Fatal(err)
	}
	return object
}

func (b *bench) reconcile() reconcile.Result {
	b.t.Helper()
	result, err := b.loop.Reconcile(b.t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil && strings.Contains(err.Error(), canary) {
		b.t.Errorf("the error shows a secret: %v", err)
	}
	for _, c := range b.object().Status.Conditions {
		if strings.Contains(c.Message, canary) {
			b.t.Errorf("the condition %s shows a secret: %s", c.Type, c.Message)
		}
	}
	return result
}

// ready returns "<status> <reason>: <message>" of Ready.
func (b *bench) ready() string {
	b.t.Helper()
	for _, c := range b.object().Status.Conditions {
		if c.Type == meta.ReadyCondition {
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
	}
	return ""
}

func conditions(object *sourcev1.OCIRepository) []string {
	var out []string
	for _, c := range object.Status.Conditions {
		out = append(out, c.Type+"="+string(c.Status)+" "+c.Reason)
	}
	slices.Sort(out)
	return out
}

// files returns what the artifact holds.
func (b *bench) files() map[string]string {
	b.t.Helper()
	files, err := b.store.Open(b.t.Context(), b.object().Status.Artifact.Digest)
	if err != nil {
		b.t.Fatal(err)
	}
	out := map[string]string{}
	for name, content := range files.Contents() {
		out[name] = string(content)
	}
	return out
}

// TestATagIsFetched checks what becomes of a tag that moves, and that one that does not costs one request and no write.
func TestATagIsFetched(t *testing.T) {
	b := newBench(t, ocirepository.Options{})
	first := b.push("latest", map[string]string{"app.yaml": "one", "notes.md": "x", ".sourceignore": "*.md\n"})
	b.create(nil)
	if result := b.reconcile(); result.RequeueAfter != time.Minute {
		t.Errorf("it is looked at again after %s", result.RequeueAfter)
	}
	if diff := cmp.Diff([]string{"ArtifactInStorage=True Succeeded", "Ready=True Succeeded"}, conditions(b.object())); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if want := "True Succeeded: stored artifact for digest 'latest@" + first + "'"; b.ready() != want {
		t.Errorf("it is %q, want %q", b.ready(), want)
	}
	if diff := cmp.Diff(map[string]string{"app.yaml": "one", ".sourceignore": "*.md\n"}, b.files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	a := b.object().Status.Artifact
	want := map[string]string{
		"org.opencontainers.image.source": "https://git.test/app", "org.opencontainers.image.revision": "main@sha1:9f2c8c1d", "org.opencontainers.image.title": "two lines",
	}
	delete(a.Metadata, "example.com/"+strings.Repeat("k", 20))
	if diff := cmp.Diff(want, a.Metadata); diff != "" || a.Revision != "latest@"+first || a.URL != "http://hub/artifacts/"+a.Path {
		t.Errorf("the artifact is %+v (-want +got):\n%s", a, diff)
	}
	event := "Normal NewArtifact: stored artifact with revision 'latest@" + first + "' from 'oci://" + b.host() + "/app', origin source 'https://git.test/app', origin revision 'main@sha1:9f2c8c1d'"
	if diff := cmp.Diff([]string{event}, b.events); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}

	b.registry.Requests()
	b.writes, b.events = 0, nil
	b.reconcile()
	if diff := cmp.Diff([]string{"HEAD /v2/app/manifests/latest"}, b.registry.Requests()); diff != "" || b.writes != 0 || b.events != nil {
		t.Errorf("nothing has changed, and there are %d writes and the Events %q; requests (-want +got):\n%s", b.writes, b.events, diff)
	}

	second := b.push("latest", map[string]string{"app.yaml": "two"})
	b.reconcile()
	if got := b.object().Status.Artifact.Revision; got != "latest@"+second || b.files()["app.yaml"] != "two" {
		t.Errorf("the artifact is of %s, want %s", got, second)
	}
	b.push("latest", map[string]string{"app.yaml": "one", "notes.md": "x", ".sourceignore": "*.md\n"}) // and back
	b.reconcile()
	if got := b.object().Status.Artifact.Revision; got != "latest@"+first {
		t.Errorf("the artifact is of %s, want %s", got, first)
	}
}

// TestAMovingTag checks that a tag that moves between two requests is never half of each.
func TestAMovingTag(t *testing.T) {
	b := newBench(t, ocirepository.Options{})
	first := b.push("latest", map[string]string{"app.yaml": "one"})
	moved := false
	b.registry.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && !moved {
			moved = true
			b.push("latest", map[string]string{"app.yaml": "two"})
		}
		return false
	})
	b.create(nil)
	b.reconcile()
	if got := b.object().Status.Artifact.Revision; !moved || got != "latest@"+first || b.files()["app.yaml"] != "one" {
		t.Errorf("the artifact of %s has %q, want that of %s", got, b.files(), first)
	}
}

// TestSelection checks that another choice of what belongs to an artifact makes another one of the same revision.
func TestSelection(t *testing.T) {
	b := newBench(t, ocirepository.Options{})
	digest := b.push("latest", map[string]string{"app.yaml": "one", "other.yaml": "two"})
	b.create(nil)
	b.reconcile()
	b.edit(func(spec *sourcev1.OCIRepositorySpec) { spec.Ignore = ptr.To("other.yaml\n") })
	b.reconcile()
	if diff := cmp.Diff(map[string]string{"app.yaml": "one"}, b.files()); diff != "" {
		t.Errorf("with spec.ignore (-want +got):\n%s", diff)
	}
	copied := &sourcev1.OCILayerSelector{MediaType: ociserver.Layer, Operation: sourcev1.OCILayerCopy}
	b.edit(func(spec *sourcev1.OCIRepositorySpec) { spec.LayerSelector = copied })
	b.reconcile()
	layer, err := ociserver.Pack(map[string]string{"app.yaml": "one", "other.yaml": "two"})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.object().Status; got.Artifact.Revision != "latest@"+digest || *got.Artifact.Size != int64(len(layer)) || !cmp.Equal(got.ObservedLayerSelector, copied) {
		t.Errorf("the copy is %+v", got)
	}
	b.edit(func(spec *sourcev1.OCIRepositorySpec) {
		spec.LayerSelector = &sourcev1.OCILayerSelector{MediaType: "a/b"}
	})
	b.reconcile()
	if !strings.HasPrefix(b.ready(), "False OCIArtifactLayerOperationFailed: ") || !strings.Contains(b.ready(), `none of the 1 layers has the media type "a/b"`) {
		t.Errorf("it is %q", b.ready())
	}
}

// secret returns one with a login.
func secret(name, host, username, password string) *corev1.Secret {
	auth := base64.StdEncoding.EncodeToString([]byte(username + ":" + password))
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, host, auth)}}
}

// TestLogins checks where a login may come from.
func TestLogins(t *testing.T) {
	const denied = "False AuthenticationFailed: "
	for name, tc := range map[string]struct {
		edit    func(spec *sourcev1.OCIRepositorySpec)
		objects func(host string) []client.Object
		want    string
	}{
		"no login": {nil, nil, denied + "ask for the tag latest of HOST/app: access denied (HTTP 401): the registry wants a login, name a Secret that has one for HOST in spec.secretRef"},
		"a Secret": {func(spec *sourcev1.OCIRepositorySpec) { spec.SecretRef = &meta.LocalObjectReference{Name: "login"} },
			func(host string) []client.Object { return []client.Object{secret("login", host, "ann", canary)} }, "True Succeeded: "},
		"a Secret that is not there": {func(spec *sourcev1.OCIRepositorySpec) { spec.SecretRef = &meta.LocalObjectReference{Name: "login"} },
			nil, denied + "the Secret shop/login of spec.secretRef is not there: create it"},
		"a Secret with a wrong login": {func(spec *sourcev1.OCIRepositorySpec) { spec.SecretRef = &meta.LocalObjectReference{Name: "login"} },
			func(host string) []client.Object { return []client.Object{secret("login", host, "ann", "no"+canary)} },
			denied + "ask for the tag latest of HOST/app: access denied (HTTP 401): check the login for the registry in the Secret, and what it may read"},
		"a Secret for another registry": {func(spec *sourcev1.OCIRepositorySpec) { spec.SecretRef = &meta.LocalObjectReference{Name: "login"} },
			func(string) []client.Object { return []client.Object{secret("login", "ghcr.io", "ann", canary)} },
			denied + "ask for the tag latest of HOST/app: access denied (HTTP 401): the registry wants a login, name a Secret that has one for HOST in spec.secretRef"},
		"a ServiceAccount": {func(spec *sourcev1.OCIRepositorySpec) { spec.ServiceAccountName = "puller" },
			func(host string) []client.Object {
				return []client.Object{secret("login", host, "ann", canary), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "puller"},
					ImagePullSecrets: []corev1.LocalObjectReference{{Name: "login"}}}}
			}, "True Succeeded: "},
		"a ServiceAccount that is not there": {func(spec *sourcev1.OCIRepositorySpec) { spec.ServiceAccountName = "puller" },
			nil, denied + "the ServiceAccount shop/puller of spec.serviceAccountName is not there: create it"},
		"a Secret that has none": {func(spec *sourcev1.OCIRepositorySpec) { spec.SecretRef = &meta.LocalObjectReference{Name: "login"} },
			func(string) []client.Object {
				return []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "login"}, Data: map[string][]byte{"password": []byte(canary)}}}
			}, denied + "Secret shop/login of spec.secretRef: unusable credentials: it has no key .dockerconfigjson: kubectl create secret docker-registry makes one that has"},
		"a proxy that is none": {func(spec *sourcev1.OCIRepositorySpec) {
			spec.ProxySecretRef = &meta.LocalObjectReference{Name: "proxy"}
		},
			func(string) []client.Object {
				return []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "proxy"}, Data: map[string][]byte{"address": []byte("ftp://" + canary)}}}
			}, denied + "Secret shop/proxy of spec.proxySecretRef: key address: it is no proxy: write http://host:port, https://host:port or socks5://host:port"},
		"a certificate that is none": {func(spec *sourcev1.OCIRepositorySpec) { spec.CertSecretRef = &meta.LocalObjectReference{Name: "tls"} },
			func(string) []client.Object {
				return []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "tls"}, Data: map[string][]byte{"ca.crt": []byte(canary)}}}
			}, denied + "Secret shop/tls of spec.certSecretRef: unusable credentials: ca.crt is no certificate in PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, ocirepository.Options{})
			b.push("latest", map[string]string{"app.yaml": "one"})
			b.registry.Answer(func(w http.ResponseWriter, r *http.Request) bool {
				if u, p, _ := r.BasicAuth(); u == "ann" && p == canary {
					return false
				}
				w.Header().Set("WWW-Authenticate", "Basic")
				w.WriteHeader(http.StatusUnauthorized)
				return true
			})
			if tc.objects != nil {
				b.add(tc.objects(b.host())...)
			}
			b.create(tc.edit)
			b.reconcile()
			if got := strings.ReplaceAll(b.ready(), b.host(), "HOST"); !strings.HasPrefix(got, tc.want) {
				t.Errorf("it is %q, want %q", got, tc.want)
			}
		})
	}
}

// TestWhatGoesWrong checks how each fault is told, when it is tried again, and that the last artifact stays.
func TestWhatGoesWrong(t *testing.T) {
	status := func(code int, header ...string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			if len(header) > 0 {
				w.Header().Set(header[0], header[1])
			}
			http.Error(w, canary, code)
			return true
		}
	}
	for name, tc := range map[string]struct {
		edit   func(spec *sourcev1.OCIRepositorySpec)
		answer func(w http.ResponseWriter, r *http.Request) bool
		want   []string
		after  time.Duration
	}{
		"a tag that is gone": {func(spec *sourcev1.OCIRepositorySpec) { spec.Reference = &sourcev1.OCIRepositoryRef{Tag: "gone"} }, nil,
			[]string{"FetchFailed=True OCIArtifactPullFailed", "Ready=False OCIArtifactPullFailed", "Reconciling=True ProgressingWithRetry"}, time.Minute},
		"a URL that is none": {func(spec *sourcev1.OCIRepositorySpec) { spec.URL = "oci://ghcr.io/app:tag" }, nil,
			[]string{"FetchFailed=True URLInvalid", "Ready=False URLInvalid", "Stalled=True URLInvalid"}, 0},
		"a range that is none": {func(spec *sourcev1.OCIRepositorySpec) { spec.Reference = &sourcev1.OCIRepositoryRef{SemVer: "x.y.z.w"} }, nil,
			[]string{"FetchFailed=True OCIArtifactPullFailed", "Ready=False OCIArtifactPullFailed", "Stalled=True OCIArtifactPullFailed"}, 0},
		"an address that nobody may reach": {func(spec *sourcev1.OCIRepositorySpec) { spec.URL = "oci://169.254.169.254/app" }, nil,
			[]string{"FetchFailed=True AddressNotAllowed", "Ready=False AddressNotAllowed", "Stalled=True AddressNotAllowed"}, time.Minute},
		"a registry that is busy": {nil, status(http.StatusTooManyRequests, "Retry-After", "600"),
			[]string{"FetchFailed=True OCIArtifactPullFailed", "Ready=False OCIArtifactPullFailed", "Reconciling=True ProgressingWithRetry"}, 10 * time.Minute},
		"a registry that is broken": {nil, status(http.StatusInternalServerError),
			[]string{"FetchFailed=True OCIArtifactPullFailed", "Ready=False OCIArtifactPullFailed", "Reconciling=True ProgressingWithRetry"}, 0},
		"a provider": {func(spec *sourcev1.OCIRepositorySpec) { spec.Provider = "aws" }, nil,
			[]string{"Ready=False UnsupportedField", "Stalled=True UnsupportedField"}, 0},
		"signatures": {func(spec *sourcev1.OCIRepositorySpec) {
			spec.Verify = &sourcev1.OCIRepositoryVerification{Provider: "gpg"}
		}, nil,
			[]string{"Ready=False UnsupportedField", "SourceVerified=False VerificationError", "Stalled=True UnsupportedField"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, ocirepository.Options{})
			b.push("latest", map[string]string{"app.yaml": "one"})
			b.create(nil)
			b.reconcile()
			was := b.object().Status.Artifact
			b.edit(func(spec *sourcev1.OCIRepositorySpec) {
				if tc.edit != nil {
					tc.edit(spec)
				}
			})
			b.registry.Answer(tc.answer)
			result := b.reconcile()
			if diff := cmp.Diff(append([]string{"ArtifactInStorage=True Succeeded"}, tc.want...), conditions(b.object())); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if result.RequeueAfter != tc.after {
				t.Errorf("it is tried again after %s, want %s: %s", result.RequeueAfter, tc.after, b.ready())
			}
			if diff := cmp.Diff(was, b.object().Status.Artifact); diff != "" {
				t.Errorf("the artifact (-want +got):\n%s", diff)
			}
			if n := len(b.events); n != 2 || !strings.HasPrefix(b.events[1], "Warning ") {
				t.Errorf("Events: %q", b.events)
			}
			writes := b.writes
			b.reconcile()
			if b.writes != writes {
				t.Errorf("a lasting fault is written again: %s", b.ready())
			}
		})
	}
}

// TestTheProxyIsNamed: what is wrong with a proxy names the Secret that names the proxy.
func TestTheProxyIsNamed(t *testing.T) {
	for name, tc := range map[string]struct{ proxy, want string }{
		"nothing is there":             {"http://127.0.0.1:1", "False OCIArtifactPullFailed: ask for the tag latest of REGISTRY/app: the proxy of the Secret shop/proxy: connection refused"},
		"it is where no source may be": {"http://10.9.9.9:3128", "False AddressNotAllowed: ask for the tag latest of REGISTRY/app: the proxy of the Secret shop/proxy: address not allowed: 10.9.9.9 leads to a private address"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, ocirepository.Options{})
			b.push("latest", map[string]string{"app.yaml": "one"})
			b.add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "proxy"}, Data: map[string][]byte{"address": []byte(tc.proxy)}})
			b.create(func(spec *sourcev1.OCIRepositorySpec) {
				spec.ProxySecretRef = &meta.LocalObjectReference{Name: "proxy"}
			})
			b.reconcile()
			if want := strings.ReplaceAll(tc.want, "REGISTRY", b.host()); !strings.HasPrefix(b.ready(), want) {
				t.Errorf("%s\nwant %s", b.ready(), want)
			}
		})
	}
}

// TestHostileLayers checks that what a layer must not hold is neither stored nor applied.
func TestHostileLayers(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a way out":      {"../../etc/passwd": "x"},
		"too many bytes": {"big": strings.Repeat("0", 3<<20)},
		"an absolute":    {"/etc/passwd": "x"},
		"twins by case":  {"Web.yaml": "x", "web.yaml": "y"},
		"twins by form":  {"caf\u00e9/web.yaml": "x", "cafe\u0301/web.yaml": "y"},
	} {
		for _, operation := range []string{sourcev1.OCILayerExtract, sourcev1.OCILayerCopy} {
			t.Run(name+", "+operation, func(t *testing.T) {
				b := newBench(t, ocirepository.Options{Limits: artifact.Limits{Unpacked: 2 << 20}})
				b.push("latest", files)
				b.create(func(spec *sourcev1.OCIRepositorySpec) {
					spec.LayerSelector = &sourcev1.OCILayerSelector{Operation: operation}
				})
				b.reconcile()
				if !strings.HasPrefix(b.ready(), "False OCIArtifactLayerOperationFailed: files of latest@sha256:") || b.object().Status.Artifact != nil {
					t.Errorf("it is %q", b.ready())
				}
			})
		}
	}
}

// TestLimits checks that all kinds of sources count together.
func TestLimits(t *testing.T) {
	limits := tenancy.Limits{tenancy.Sources: 1}
	b := newBench(t, ocirepository.Options{Namespaces: func(string) tenancy.Limits { return limits }})
	b.push("latest", map[string]string{"app.yaml": "one"})
	b.create(nil)
	b.add(&sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "older", CreationTimestamp: metav1.NewTime(start.Add(-time.Hour))}})
	b.reconcile()
	if want := "False LimitExceeded: the namespace shop would have 2 sources, and may have 1"; !strings.HasPrefix(b.ready(), want) {
		t.Errorf("it is %q, want %q", b.ready(), want)
	}
	limits = tenancy.Limits{tenancy.ArtifactSize: 1}
	b.reconcile()
	if !strings.HasPrefix(b.ready(), "False LimitExceeded: ") {
		t.Errorf("it is %q", b.ready())
	}
	limits = nil
	b.reconcile()
	if !strings.HasPrefix(b.ready(), "True Succeeded: ") {
		t.Errorf("once there is room it is %q", b.ready())
	}
}

// TestArtifactsInUse checks that one that is still applied is kept, and fetched again if it is lost.
func TestArtifactsInUse(t *testing.T) {
	var used []artifact.Used
	b := newBench(t, ocirepository.Options{InUse: func(context.Context, client.ObjectKey) ([]artifact.Used, error) { return used, nil }})
	b.push("latest", map[string]string{"app.yaml": "one"})
	b.create(nil)
	b.reconcile()
	first := b.object().Status.Artifact
	if err := b.store.Release(artifact.Owner("OCIRepository", key.Namespace, key.Name)); err != nil {
		t.Fatal(err)
	}
	b.push("latest", map[string]string{"app.yaml": "two"})
	used = []artifact.Used{{Digest: first.Digest, Revision: first.Revision}}
	b.reconcile()
	if !b.store.Has(first.Digest) || !b.store.Has(b.object().Status.Artifact.Digest) {
		t.Error("one of the artifacts is not there")
	}
}

// TestTheEnd checks that nothing stays of one that is deleted, nor is anything done for one that is suspended.
func TestTheEnd(t *testing.T) {
	b := newBench(t, ocirepository.Options{})
	b.push("latest", map[string]string{"app.yaml": "one"})
	b.create(nil)
	b.reconcile()
	digest := b.object().Status.Artifact.Digest
	b.edit(func(spec *sourcev1.OCIRepositorySpec) { spec.Suspend = true })
	b.registry.Requests()
	if result := b.reconcile(); result.RequeueAfter != 0 || len(b.registry.Requests()) > 0 {
		t.Error("it is suspended, and was looked at")
	}
	object := b.object()
	object.Finalizers = []string{sourcev1.SourceFinalizer}
	if err := b.hub.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if err := b.hub.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := b.loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
	}
	if b.store.Has(digest) {
		t.Error("its artifact is still there")
	}
	if err := b.hub.Get(t.Context(), key, object); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("it is still there: %v", err)
	}
}
