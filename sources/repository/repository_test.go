package repository_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/repository"
)

// canary is the secret that must never show.
const canary = "CANARY-51ce"

var start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// bench is a reconciler between a real repository and a fake hub client.
type bench struct {
	t      *testing.T
	hub    client.Client
	writes int
	events []string
	dir    string // the store's folder
	store  *artifact.Store
	git    *gitserver.Server
	clone  string
	loop   *repository.Reconciler
	clock  *clocktesting.FakePassiveClock
}

// Event records "<type> <reason>: <message>".
func (b *bench) Event(_ runtime.Object, kind, reason, message string) {
	b.events = append(b.events, kind+" "+reason+": "+message)
}

// reach allows connections to the servers of these tests.
var reach = egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

func newBench(t *testing.T, opts repository.Options) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), clone: filepath.Join(t.TempDir(), "clone"), clock: clocktesting.NewFakePassiveClock(start)}
	root := t.TempDir()
	var err error
	if b.git, err = gitserver.Start(t.Context(), root, "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.git.Close() })
	if err := b.git.Create(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	if _, err := gitserver.Git(t.Context(), root, "clone", "--quiet", b.git.URL("app"), b.clone); err != nil {
		t.Fatal(err)
	}
	b.run("checkout", "--quiet", "-b", "main")
	b.hub = fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(&sourcev1.GitRepository{}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				b.writes++
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	opts.Clock = b.clock
	opts.Jitter = func(d time.Duration) time.Duration { return d }
	opts.Git.TempDir = t.TempDir()
	opts.Git.Egress = reach
	b.restart(opts)
	return b
}

// restart reopens the store and creates a Reconciler without any state.
func (b *bench) restart(opts repository.Options) {
	b.t.Helper()
	var err error
	if b.store, err = artifact.NewStore(b.dir, artifact.Options{BaseURL: "http://hub/artifacts"}); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = b.store.Close() })
	opts.Clock = b.clock
	if opts.Git.Egress.Networks == nil {
		opts.Git.Egress = reach
	}
	b.loop = repository.New(b.hub, b.store, b, opts)
}

func (b *bench) run(args ...string) string {
	b.t.Helper()
	out, err := gitserver.Git(b.t.Context(), b.clone, args...)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *bench) commit(message string, files map[string]string) string {
	b.t.Helper()
	for name, content := range files {
		path := filepath.Join(b.clone, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
	b.run("add", "-A")
	b.run("commit", "--quiet", "--allow-empty", "-m", message)
	b.run("push", "--quiet", "origin", "HEAD")
	return b.run("rev-parse", "HEAD")
}

// committed returns the time of a commit in the format of the artifact's
// metadata.
func (b *bench) committed(commit string) string {
	b.t.Helper()
	at, err := time.Parse(time.RFC3339, b.run("log", "-1", "--format=%cI", commit))
	if err != nil {
		b.t.Fatal(err)
	}
	return at.UTC().Format(time.RFC3339)
}

// secret creates a Secret beside the repository.
func (b *bench) secret(name string, data map[string]string) {
	b.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}, Data: map[string][]byte{}}
	for k, v := range data {
		secret.Data[k] = []byte(v)
	}
	if err := b.hub.Create(b.t.Context(), secret); err != nil {
		b.t.Fatal(err)
	}
}

var key = client.ObjectKey{Namespace: "shop", Name: "app"}

// create creates the GitRepository of branch main, with a change.
func (b *bench) create(change func(*sourcev1.GitRepository)) {
	b.t.Helper()
	object := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 1},
		Spec: sourcev1.GitRepositorySpec{
			URL: b.git.URL("app"), Interval: metav1.Duration{Duration: time.Minute}, Reference: &sourcev1.GitRepositoryRef{Branch: "main"},
		},
	}
	if change != nil {
		change(object)
	}
	if err := b.hub.Create(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) update(change func(*sourcev1.GitRepository)) {
	b.t.Helper()
	object := b.object()
	change(object)
	if err := b.hub.Update(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) object() *sourcev1.GitRepository {
	b.t.Helper()
	var object sourcev1.GitRepository
	if err := b.hub.Get(b.t.Context(), key, &object); err != nil {
		b.t.Fatal(err)
	}
	return &object
}

// reconcile runs the loop once. It also returns the number of writes, and the
// events.
func (b *bench) reconcile() (reconcile.Result, error, int, []string) {
	b.t.Helper()
	b.writes, b.events = 0, nil
	result, err := b.loop.Reconcile(b.t.Context(), reconcile.Request{NamespacedName: key})
	return result, err, b.writes, b.events
}

func (b *bench) mustReconcile() (writes int, events []string) {
	b.t.Helper()
	result, err, writes, events := b.reconcile()
	if err != nil || result.RequeueAfter != time.Minute {
		b.t.Fatalf("Reconcile = %v, %v; status %v", result, err, conditions(b.object()))
	}
	return writes, events
}

// conditions returns the conditions as "<type>=<status> <reason>", sorted.
func conditions(object *sourcev1.GitRepository) []string {
	var out []string
	for _, c := range object.Status.Conditions {
		out = append(out, c.Type+"="+string(c.Status)+" "+c.Reason)
	}
	slices.Sort(out)
	return out
}

var stored = []string{"ArtifactInStorage=True Succeeded", "Ready=True Succeeded"}

func TestFirstArtifact(t *testing.T) {
	b := newBench(t, repository.Options{})
	b.commit("make it\n\nlong text", map[string]string{"app.yaml": "a: 1\n", "logo.png": "x"})
	b.run("commit", "--quiet", "--amend", "--no-edit", "--author", "Ann\u202e Other <ann@example.com>")
	b.run("push", "--quiet", "--force", "origin", "HEAD")
	head := b.run("rev-parse", "HEAD")
	b.create(func(o *sourcev1.GitRepository) {
		o.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	})
	writes, events := b.mustReconcile()
	if writes != 1 {
		t.Errorf("%d writes, want 1", writes)
	}
	if diff := cmp.Diff([]string{"Normal NewArtifact: stored artifact for commit 'make it' (main@sha1:" + head[:8] + ")"}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	status := b.object().Status
	digest := status.Artifact.Digest
	path := "sha256/" + strings.TrimPrefix(digest, "sha256:") + ".tar.gz"
	message := "stored artifact for revision 'main@sha1:" + head + "'"
	condition := func(kind string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Succeeded", Message: message, ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(start)}
	}
	want := sourcev1.GitRepositoryStatus{
		ObservedGeneration: 1,
		Conditions:         []metav1.Condition{condition("Ready"), condition("ArtifactInStorage")},
		Artifact: &meta.Artifact{
			Digest: digest, Path: path, URL: "http://hub/artifacts/" + path, Revision: "main@sha1:" + head,
			LastUpdateTime: metav1.NewTime(start), Size: status.Artifact.Size,
			Metadata: map[string]string{
				"gitops.flotilla.io/commit-author":  "Ann Other <ann@example.com>", // without the bidi control
				"gitops.flotilla.io/commit-subject": "make it",
				"gitops.flotilla.io/commit-date":    b.committed(head),
			},
		},
		ReconcileRequestStatus: meta.ReconcileRequestStatus{LastHandledReconcileAt: "now"},
	}
	if diff := cmp.Diff(want, status, cmpopts.EquateApproxTime(0)); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	files, err := b.store.Open(t.Context(), digest)
	if err != nil || len(files) != 1 || string(files["app.yaml"].Data) != "a: 1\n" {
		t.Errorf("artifact = %v, %v", files, err)
	}
}

func TestUnchangedPollsWriteNothing(t *testing.T) {
	b := newBench(t, repository.Options{})
	b.commit("one", map[string]string{"app.yaml": "a: 1\n"})
	b.create(nil)
	b.mustReconcile()
	for _, step := range []struct {
		when  string
		wants int64 // requests; the server is asked once what it can do
	}{{"after the first", 1}, {"after a restart", 2}} {
		b.clock.SetTime(b.clock.Now().Add(time.Hour))
		before := b.git.Requests()
		writes, events := b.mustReconcile()
		if requests := b.git.Requests() - before; writes != 0 || len(events) != 0 || requests != step.wants {
			t.Errorf("%s: %d writes, %d events, %d requests; want 0, 0, %d", step.when, writes, len(events), requests, step.wants)
		}
		b.restart(repository.Options{Jitter: func(d time.Duration) time.Duration { return d }})
	}
}

func TestWhatMakesANewArtifact(t *testing.T) {
	cases := map[string]struct {
		change     func(b *bench)
		wantWrites int
		wantFetch  bool
		wantEvents int
	}{
		"a commit": {
			change: func(b *bench) { b.commit("two", map[string]string{"app.yaml": "a: 2\n"}) }, wantWrites: 1, wantFetch: true, wantEvents: 1,
		},
		"other ignore rules": {
			change: func(b *bench) {
				b.update(func(o *sourcev1.GitRepository) { o.Spec.Ignore = ptr.To("*.md"); o.Generation = 2 })
			}, wantWrites: 1, wantFetch: true, wantEvents: 1,
		},
		"other directories": {
			change: func(b *bench) {
				b.update(func(o *sourcev1.GitRepository) { o.Spec.SparseCheckout = []string{"docs"}; o.Generation = 2 })
			}, wantWrites: 1, wantFetch: true, wantEvents: 1,
		},
		"an artifact that was lost": {
			change: func(b *bench) {
				if err := os.RemoveAll(filepath.Join(b.dir, "sha256")); err != nil {
					b.t.Fatal(err)
				}
				b.restart(repository.Options{Jitter: func(d time.Duration) time.Duration { return d }})
			}, wantWrites: 1, wantFetch: true,
		},
		"an artifact that was damaged": {
			change: func(b *bench) {
				if err := os.Truncate(filepath.Join(b.dir, b.object().Status.Artifact.Path), 10); err != nil {
					b.t.Fatal(err)
				}
			}, wantWrites: 1, wantFetch: true,
		},
		"not a request, which is answered": {
			change: func(b *bench) {
				b.update(func(o *sourcev1.GitRepository) {
					o.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "again"}
				})
			}, wantWrites: 1,
		},
		"not another interval": {
			change: func(b *bench) {
				b.update(func(o *sourcev1.GitRepository) {
					o.Spec.Timeout = &metav1.Duration{Duration: time.Second}
					o.Generation = 2
				})
			},
			wantWrites: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, repository.Options{})
			b.commit("one", map[string]string{"app.yaml": "a: 1\n", "README.md": "x", "docs/a.yaml": "x"})
			b.create(nil)
			b.mustReconcile()
			tc.change(b)
			b.clock.SetTime(start.Add(time.Hour))
			writes, events := b.mustReconcile()
			object := b.object()
			fetched := object.Status.Artifact.LastUpdateTime.After(start)
			if writes != tc.wantWrites || fetched != tc.wantFetch || len(events) != tc.wantEvents {
				t.Errorf("%d writes, fetched %t, events %v; want %d, %t, %d", writes, fetched, events, tc.wantWrites, tc.wantFetch, tc.wantEvents)
			}
			if diff := cmp.Diff(stored, conditions(object)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if !b.store.Has(object.Status.Artifact.Digest) || object.Status.ObservedGeneration != object.Generation {
				t.Errorf("artifact in store: %t, status %+v", b.store.Has(object.Status.Artifact.Digest), object.Status)
			}
			if writes, _ := b.mustReconcile(); writes != 0 {
				t.Errorf("%d writes afterwards, want 0", writes)
			}
		})
	}
}

// guarded returns the address of a server that requires a password and fails in
// other ways at other paths.
func guarded(t *testing.T, b *bench) string {
	t.Helper()
	to, err := url.Parse(b.git.URL("app"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host }}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != canary {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/app.git"
}

func TestFailures(t *testing.T) {
	secret := func(b *bench, data map[string]string) *meta.LocalObjectReference {
		b.t.Helper()
		object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "auth"}, Data: map[string][]byte{}}
		for k, v := range data {
			object.Data[k] = []byte(v)
		}
		if err := b.hub.Create(b.t.Context(), object); err != nil {
			b.t.Fatal(err)
		}
		return &meta.LocalObjectReference{Name: "auth"}
	}
	waiting := func(reason string) []string {
		return []string{"ArtifactInStorage=True Succeeded", "FetchFailed=True " + reason, "Ready=False " + reason, "Reconciling=True ProgressingWithRetry"}
	}
	cases := map[string]struct {
		change    func(b *bench, o *sourcev1.GitRepository)
		opts      repository.Options
		want      []string
		says      string
		wantAfter time.Duration // zero: stalled, or an error that backs off
		wantErr   bool
	}{
		"a repository that is gone": {
			change: func(b *bench, o *sourcev1.GitRepository) { o.Spec.URL = b.git.URL("gone") },
			want:   waiting("GitOperationFailed"), says: "repository not found", wantAfter: time.Minute,
		},
		"a branch that vanished": {
			change: func(_ *bench, o *sourcev1.GitRepository) { o.Spec.Reference.Branch = "gone" },
			want:   waiting("GitOperationFailed"), says: "branch gone: ref not found", wantAfter: time.Minute,
		},
		"a Secret that is not there": {
			change: func(_ *bench, o *sourcev1.GitRepository) { o.Spec.SecretRef = &meta.LocalObjectReference{Name: "gone"} },
			want:   waiting("AuthenticationFailed"), says: "Secret shop/gone", wantAfter: 5 * time.Second,
		},
		"a Secret that makes no sense": {
			change: func(b *bench, o *sourcev1.GitRepository) {
				o.Spec.SecretRef = secret(b, map[string]string{"username": canary})
			},
			want: waiting("AuthenticationFailed"), says: "username and password go together", wantAfter: time.Minute,
		},
		"wrong credentials": {
			change: func(b *bench, o *sourcev1.GitRepository) {
				o.Spec.URL = guarded(b.t, b)
				o.Spec.SecretRef = secret(b, map[string]string{"username": "bot", "password": canary + "x"})
			},
			want: waiting("AuthenticationFailed"), says: "check the credentials", wantAfter: time.Minute,
		},
		"wrong credentials in the URL": {
			change: func(b *bench, o *sourcev1.GitRepository) {
				o.Spec.URL = strings.Replace(guarded(b.t, b), "://", "://bot:"+canary+"x@", 1)
			},
			want: waiting("AuthenticationFailed"), says: "://***@", wantAfter: time.Minute,
		},
		"a file with a name that hides something": {
			change: func(b *bench, _ *sourcev1.GitRepository) {
				b.commit("two", map[string]string{"a\u202eb.yaml": "a: 1\n"})
			},
			want: waiting("GitOperationFailed"), says: "holds control characters", wantAfter: time.Minute,
		},
		"names that differ in case alone": {
			change: func(b *bench, _ *sourcev1.GitRepository) {
				b.commit("two", map[string]string{"app/Web.yaml": "a: 1\n", "app/web.yaml": "a: 2\n"})
			},
			want: waiting("GitOperationFailed"), says: `the names "app/Web.yaml" and "app/web.yaml" differ only in case, or in how their letters are encoded, and are the same on many disks: rename one, or exclude it with spec.ignore or .sourceignore`, wantAfter: time.Minute,
		},
		"folders that look the same": {
			change: func(b *bench, _ *sourcev1.GitRepository) {
				b.commit("two", map[string]string{"caf\u00e9/a.yaml": "a: 1\n", "cafe\u0301/b.yaml": "a: 2\n"})
			},
			want: waiting("GitOperationFailed"), says: `the names "cafe\u0301" and "caf\u00e9" differ only`, wantAfter: time.Minute,
		},
		"a server that is out of order": {
			change: func(b *bench, _ *sourcev1.GitRepository) { b.git.OutOfOrder(true) },
			want:   waiting("GitOperationFailed"), says: "HTTP 503", wantErr: true,
		},
		"a server that is down": {
			change: func(b *bench, _ *sourcev1.GitRepository) { _ = b.git.Close() },
			want:   waiting("GitOperationFailed"), says: "refused", wantErr: true,
		},
		"an address that is not allowed": {
			change: func(_ *bench, o *sourcev1.GitRepository) { o.Spec.URL = "http://10.0.0.1/app.git" },
			want:   []string{"ArtifactInStorage=True Succeeded", "FetchFailed=True AddressNotAllowed", "Ready=False AddressNotAllowed", "Stalled=True AddressNotAllowed"},
			says:   "10.0.0.1 leads to a private address; an administrator can allow that with flotillad serve --source-networks", wantAfter: time.Minute,
		},
		"a redirect to an address that is not allowed": {
			change: func(b *bench, o *sourcev1.GitRepository) {
				s := httptest.NewServer(http.RedirectHandler("http://"+canary+"@169.254.169.254/app.git/info/refs", http.StatusFound))
				b.t.Cleanup(s.Close)
				o.Spec.URL = s.URL + "/app.git"
			},
			want: []string{"ArtifactInStorage=True Succeeded", "FetchFailed=True AddressNotAllowed", "Ready=False AddressNotAllowed", "Stalled=True AddressNotAllowed"},
			says: "a host that it redirects to leads to a link-local or reserved address", wantAfter: time.Minute,
		},
		"a URL that is none": {
			change: func(_ *bench, o *sourcev1.GitRepository) { o.Spec.URL = "git@example.com:org/repo" },
			want:   []string{"ArtifactInStorage=True Succeeded", "FetchFailed=True URLInvalid", "Ready=False URLInvalid", "Stalled=True URLInvalid"}, says: "ssh://user@host/path",
		},
		"a range that is none": {
			change: func(_ *bench, o *sourcev1.GitRepository) { o.Spec.Reference.SemVer = "x.y" },
			want:   []string{"ArtifactInStorage=True Succeeded", "FetchFailed=True GitOperationFailed", "Ready=False GitOperationFailed", "Stalled=True GitOperationFailed"}, says: `spec.ref.semver "x.y" is no range of versions, such as`,
		},
		"a range that is none, of a server that is down": {
			change: func(b *bench, o *sourcev1.GitRepository) {
				_ = b.git.Close()
				o.Spec.Reference.SemVer = "x.y"
			},
			want: []string{"ArtifactInStorage=True Succeeded", "FetchFailed=True GitOperationFailed", "Ready=False GitOperationFailed", "Stalled=True GitOperationFailed"}, says: `spec.ref.semver "x.y" is no range of versions, such as`,
		},
		"a field that is not supported": {
			change: func(_ *bench, o *sourcev1.GitRepository) { o.Spec.Provider = "aws" },
			want:   []string{"ArtifactInStorage=True Succeeded", "Ready=False UnsupportedField", "Stalled=True UnsupportedField"}, says: "spec.provider aws takes a flotillad that was built with -tags clouds",
		},
		"a proxy whose Secret is not there": {
			change: func(_ *bench, o *sourcev1.GitRepository) {
				o.Spec.ProxySecretRef = &meta.LocalObjectReference{Name: "proxy"}
			},
			want: waiting("AuthenticationFailed"), says: "the Secret shop/proxy of spec.proxySecretRef is not there: create it", wantAfter: 5 * time.Second,
		},
		"a proxy that is none": {
			change: func(b *bench, o *sourcev1.GitRepository) {
				b.secret("proxy", map[string]string{"address": "ftp://" + canary})
				o.Spec.ProxySecretRef = &meta.LocalObjectReference{Name: "proxy"}
			},
			want: waiting("AuthenticationFailed"), says: "Secret shop/proxy of spec.proxySecretRef: key address: it is no proxy", wantAfter: time.Minute,
		},
		"a proxy where no source may be": {
			change: func(b *bench, o *sourcev1.GitRepository) {
				b.secret("proxy", map[string]string{"address": "http://169.254.169.254"})
				o.Spec.ProxySecretRef = &meta.LocalObjectReference{Name: "proxy"}
			},
			want: []string{"ArtifactInStorage=True Succeeded", "FetchFailed=True AddressNotAllowed", "Ready=False AddressNotAllowed", "Stalled=True AddressNotAllowed"},
			says: "169.254.169.254 leads to a link-local", wantAfter: time.Minute,
		},
		"a proxy that wants a password": {
			change: func(b *bench, o *sourcev1.GitRepository) {
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					http.Error(w, canary, http.StatusProxyAuthRequired)
				}))
				b.t.Cleanup(s.Close)
				b.secret("proxy", map[string]string{"address": s.URL})
				o.Spec.ProxySecretRef = &meta.LocalObjectReference{Name: "proxy"}
			},
			want: waiting("AuthenticationFailed"), says: "the proxy of the Secret shop/proxy: it wants a username and password, or others (HTTP 407)", wantAfter: time.Minute,
		},
		"a directory that is not there": {
			change: func(_ *bench, o *sourcev1.GitRepository) { o.Spec.SparseCheckout = []string{"prod"} },
			want:   waiting("InvalidPath"), says: `directory "prod" of spec.sparseCheckout`, wantAfter: time.Minute,
		},
		"a repository that is too large": {
			change: func(b *bench, _ *sourcev1.GitRepository) {
				b.commit("large", map[string]string{"large.yaml": strings.Repeat("x", 2000)})
			},
			opts: repository.Options{Limits: artifact.Limits{Unpacked: 1000}},
			want: waiting("GitOperationFailed"), says: "more than 1000 bytes", wantAfter: time.Minute,
		},
		"a transfer that is too large": {
			change: func(b *bench, _ *sourcev1.GitRepository) {
				b.commit("large", map[string]string{"large.yaml": strings.Repeat("x", 2000)})
			},
			opts: repository.Options{Git: git.Options{Limits: git.Limits{Object: 1000}}},
			want: waiting("GitOperationFailed"), says: "too large", wantAfter: time.Minute,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tc.opts)
			b.commit("one", map[string]string{"app.yaml": "a: 1\n"})
			b.create(nil)
			b.mustReconcile()
			good := b.object().Status.Artifact
			b.update(func(o *sourcev1.GitRepository) {
				tc.change(b, o)
				o.Generation = 2
			})
			result, err, writes, events := b.reconcile()
			if (err != nil) != tc.wantErr || result.RequeueAfter != tc.wantAfter {
				t.Errorf("Reconcile = %v, %v; want after %s, an error: %t", result, err, tc.wantAfter, tc.wantErr)
			}
			object := b.object()
			if diff := cmp.Diff(tc.want, conditions(object)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			ready := object.Status.Conditions[slices.IndexFunc(object.Status.Conditions, func(c metav1.Condition) bool { return c.Type == "Ready" })]
			if !strings.Contains(ready.Message, tc.says) || strings.Contains(ready.Message+strings.Join(events, ""), canary) {
				t.Errorf("message = %q, want one saying %q and no secret", ready.Message, tc.says)
			}
			if writes != 1 || len(events) != 1 {
				t.Errorf("%d writes, events %v; want one of each", writes, events)
			}
			if diff := cmp.Diff(good, object.Status.Artifact); diff != "" || !b.store.Has(good.Digest) {
				t.Errorf("the last good artifact is no longer there (-want +got):\n%s", diff)
			}
			if _, _, writes, events := b.reconcile(); writes != 0 || len(events) != 0 {
				t.Errorf("the same fault again makes %d writes, events %v", writes, events)
			}
		})
	}
}

func TestRecovery(t *testing.T) {
	b := newBench(t, repository.Options{})
	b.commit("one", map[string]string{"app.yaml": "a: 1\n"})
	b.create(nil)
	b.mustReconcile()
	b.git.OutOfOrder(true)
	if _, err, _, _ := b.reconcile(); err == nil {
		t.Fatal("no error while the server is out of order")
	}
	b.git.OutOfOrder(false)
	writes, events := b.mustReconcile()
	if diff := cmp.Diff(stored, conditions(b.object())); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if writes != 1 || len(events) != 1 || !strings.HasPrefix(events[0], "Normal Succeeded: works again: the artifact of main@sha1:") {
		t.Errorf("%d writes, events %v", writes, events)
	}
}

// TestAnArtifactOfAnother checks that a status with the artifact of another
// repository is corrected, although the store has that artifact.
func TestAnArtifactOfAnother(t *testing.T) {
	b := newBench(t, repository.Options{})
	b.commit("one", map[string]string{"app.yaml": "a: 1\n"})
	b.create(nil)
	b.mustReconcile()
	own := b.object().Status.Artifact.Digest
	theirs, err := b.store.Put(t.Context(), "GitRepository/theirs/app", artifact.Files{"app.yaml": {Data: []byte("secret: 1\n")}})
	if err != nil {
		t.Fatal(err)
	}
	forged := b.object()
	forged.Status.Artifact.Digest = theirs.Digest
	if err := b.hub.Status().Update(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
	b.mustReconcile()
	if got := b.object().Status.Artifact.Digest; got != own {
		t.Errorf("the status names %s still, which another repository fetched; its own is %s", got, own)
	}
}

func TestSuspended(t *testing.T) {
	b := newBench(t, repository.Options{})
	b.commit("one", nil)
	b.create(func(o *sourcev1.GitRepository) { o.Spec.Suspend = true })
	before := b.git.Requests()
	result, err, writes, _ := b.reconcile()
	if err != nil || result != (reconcile.Result{}) || writes != 0 || b.git.Requests() != before {
		t.Errorf("Reconcile = %v, %v, %d writes; want nothing done", result, err, writes)
	}
}

func TestDeletion(t *testing.T) {
	b := newBench(t, repository.Options{})
	b.commit("one", map[string]string{"app.yaml": "a: 1\n"})
	b.create(func(o *sourcev1.GitRepository) { o.Finalizers = []string{sourcev1.SourceFinalizer} })
	b.mustReconcile()
	digest := b.object().Status.Artifact.Digest
	if err := b.hub.Delete(t.Context(), b.object()); err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"lets go of the finalizer", "lets go of the artifact"} {
		if _, err, _, _ := b.reconcile(); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
	if err := b.hub.Get(t.Context(), key, &sourcev1.GitRepository{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the repository is still there: %v", err)
	}
	if b.store.Has(digest) {
		t.Error("the artifact is still there")
	}
}
