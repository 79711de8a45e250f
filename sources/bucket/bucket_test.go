package bucket_test

import (
	"context"
	"fmt"
	"maps"
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

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/s3server"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/bucket"
	"github.com/flotilla-io/flotilla/sources/s3"
)

// canary is the secret that must never show.
const canary = "CANARY-90d4"

var (
	key   = client.ObjectKey{Namespace: "shop", Name: "app"}
	start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
)

// bench is a reconciler between a server and a fake hub client.
type bench struct {
	*s3server.Server
	t      *testing.T
	hub    client.Client
	writes int
	events []string
	store  *artifact.Store
	host   string
	loop   *bucket.Reconciler
	clock  *clocktesting.FakePassiveClock
}

// Event records "<type> <reason>: <message>".
func (b *bench) Event(_ runtime.Object, kind, reason, message string) {
	b.events = append(b.events, kind+" "+reason+": "+message)
}

func newBench(t *testing.T, opts bucket.Options) *bench {
	t.Helper()
	b := &bench{t: t, Server: s3server.New("fleet", "reader"), clock: clocktesting.NewFakePassiveClock(start)}
	server := httptest.NewServer(b.Server)
	t.Cleanup(server.Close)
	b.host = server.Listener.Addr().String()
	b.hub = fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(&sourcev1.Bucket{}).
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
	if opts.Servers.Egress.Networks == nil {
		opts.Servers.Egress = egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	}
	b.loop = bucket.New(b.hub, b.store, b, opts)
	b.add(secret("keys", "accesskey", "reader", "secretkey", canary))
	return b
}

func secret(name string, pairs ...string) *corev1.Secret {
	data := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i]] = []byte(pairs[i+1])
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}, Data: data}
}

func (b *bench) add(objects ...client.Object) {
	b.t.Helper()
	for _, object := range objects {
		if err := b.hub.Create(b.t.Context(), object); err != nil {
			b.t.Fatal(err)
		}
	}
}

// create makes the object, changed by edit.
func (b *bench) create(edit func(*sourcev1.BucketSpec)) {
	b.t.Helper()
	object := &sourcev1.Bucket{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 1, CreationTimestamp: metav1.NewTime(start)}}
	object.Spec = sourcev1.BucketSpec{Endpoint: b.host, BucketName: "fleet", Insecure: true, Interval: metav1.Duration{Duration: time.Minute}, SecretRef: &meta.LocalObjectReference{Name: "keys"}}
	if edit != nil {
		edit(&object.Spec)
	}
	b.add(object)
}

// edit changes the spec, as a new generation.
func (b *bench) edit(edit func(*sourcev1.BucketSpec)) {
	b.t.Helper()
	object := b.object()
	edit(&object.Spec)
	object.Generation++
	if err := b.hub.Update(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) object() *sourcev1.Bucket {
	b.t.Helper()
	object := &sourcev1.Bucket{}
	if err := b.hub.Get(b.t.Context(), key, object); err != nil {
		b.t.Fatal(err)
	}
	return object
}

func (b *bench) reconcile() (reconcile.Result, error) {
	b.t.Helper()
	return b.loop.Reconcile(b.t.Context(), reconcile.Request{NamespacedName: key})
}

// ready reconciles, and returns "True" or "False", the reason and the message of Ready.
func (b *bench) ready() string {
	b.t.Helper()
	_, err := b.reconcile()
	for _, c := range b.object().Status.Conditions {
		if c.Type == meta.ReadyCondition {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	b.t.Fatalf("not ready, and not unready: %v", err)
	return ""
}

// conditions returns them without Ready, as "Type=Status".
func (b *bench) conditions() []string {
	var out []string
	for _, c := range b.object().Status.Conditions {
		if c.Type != meta.ReadyCondition {
			out = append(out, c.Type+"="+string(c.Status))
		}
	}
	slices.Sort(out)
	return out
}

// files returns what is stored.
func (b *bench) files() map[string]string {
	b.t.Helper()
	files, err := b.store.Open(b.t.Context(), b.object().Status.Artifact.Digest)
	if err != nil {
		b.t.Fatal(err)
	}
	out := map[string]string{}
	for name, data := range files.Contents() {
		out[name] = string(data)
	}
	return out
}

func TestABucketIsFollowed(t *testing.T) {
	b := newBench(t, bucket.Options{})
	b.Put(map[string]string{"app/web.yaml": "one", "base/x.yaml": "two", "folder/": ""})
	b.create(nil)
	revision := s3.Revision([]s3.Object{{Key: "app/web.yaml", ETag: s3server.ETag([]byte("one"))}, {Key: "base/x.yaml", ETag: s3server.ETag([]byte("two"))}})
	if got, want := b.ready(), "True Succeeded: stored artifact: revision '"+revision+"'"; got != want {
		t.Errorf("Ready is %q, want %q", got, want)
	}
	if diff := cmp.Diff([]string{"ArtifactInStorage=True"}, b.conditions()); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"app/web.yaml": "one", "base/x.yaml": "two"}, b.files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"GET app/web.yaml", "GET base/x.yaml", "LIST"}, b.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	got := b.object().Status.Artifact
	want := &meta.Artifact{Revision: revision, Digest: got.Digest, Path: got.Path, URL: "http://hub/artifacts/" + got.Path, Size: got.Size, LastUpdateTime: got.LastUpdateTime}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("artifact (-want +got):\n%s", diff)
	}

	// Nothing has changed: one request, and no write.
	if result, err := b.reconcile(); err != nil || result.RequeueAfter != time.Minute {
		t.Errorf("result = %v, %v", result, err)
	}
	if asked := b.Requests(); !slices.Equal(asked, []string{"LIST"}) || b.writes != 1 {
		t.Errorf("asked %v and wrote %d times, want one request, and the one write of before", asked, b.writes)
	}

	// One object is another, one is new, and one is gone: the others are not fetched again.
	b.Put(map[string]string{"app/web.yaml": "changed", "base/x.yaml": "two", "new.yaml": "three"})
	b.ready()
	if diff := cmp.Diff([]string{"GET app/web.yaml", "GET new.yaml", "LIST"}, b.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"app/web.yaml": "changed", "base/x.yaml": "two", "new.yaml": "three"}, b.files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"Normal NewArtifact: stored artifact with 2 files from bucket 'fleet', 2 of them fetched",
		"Normal NewArtifact: stored artifact with 3 files from bucket 'fleet', 2 of them fetched",
	}, b.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestAfterARestart: the first list says what the artifact was made of, so that only what changes after it is fetched.
func TestAfterARestart(t *testing.T) {
	b := newBench(t, bucket.Options{})
	b.Put(map[string]string{"a": "one", "b": "two"})
	b.create(nil)
	b.ready()
	b.loop = bucket.New(b.hub, b.store, b, bucket.Options{Clock: b.clock, Servers: s3.Options{Egress: egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}})
	b.Requests()
	b.ready()
	b.Put(map[string]string{"a": "one", "b": "changed"})
	b.ready()
	if diff := cmp.Diff([]string{"GET b", "LIST", "LIST"}, b.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestWhatBelongsToIt: prefix, ignore and .sourceignore say which objects are fetched.
func TestWhatBelongsToIt(t *testing.T) {
	objects := map[string]string{"app/web.yaml": "one", "app/readme.md": "docs", "app/logo.png": "picture", "base/x.yaml": "two", ".sourceignore": "*.md\n"}
	for name, tc := range map[string]struct {
		edit        func(*sourcev1.BucketSpec)
		leave       string // an object that is not there
		want, asked []string
	}{
		"what .sourceignore leaves": {want: []string{"app/logo.png", "app/web.yaml", "base/x.yaml"}, asked: []string{"GET .sourceignore", "GET app/logo.png", "GET app/web.yaml", "GET base/x.yaml", "LIST"}},
		"what is left by default":   {leave: ".sourceignore", want: []string{"app/readme.md", "app/web.yaml", "base/x.yaml"}, asked: []string{"GET app/readme.md", "GET app/web.yaml", "GET base/x.yaml", "LIST"}},
		"ignore wins": {edit: func(s *sourcev1.BucketSpec) { s.Ignore = ptr.To("!*.md\nbase/") }, want: []string{"app/logo.png", "app/readme.md", "app/web.yaml"},
			asked: []string{"GET .sourceignore", "GET app/logo.png", "GET app/readme.md", "GET app/web.yaml", "LIST"}},
		"below a prefix": {edit: func(s *sourcev1.BucketSpec) { s.Prefix = "app/" }, want: []string{"app/logo.png", "app/web.yaml"}, asked: []string{"GET .sourceignore", "GET app/logo.png", "GET app/web.yaml", "LIST app/"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, bucket.Options{})
			has := maps.Clone(objects)
			delete(has, tc.leave)
			b.Put(has)
			b.create(tc.edit)
			if got := b.ready(); !strings.HasPrefix(got, "True ") {
				t.Fatal(got)
			}
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(b.files()))); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.asked, b.Requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExclusionsThatChange: they are read again when the bucket has others, and only then.
func TestExclusionsThatChange(t *testing.T) {
	for name, prefix := range map[string]string{"of the whole bucket": "", "below a prefix": "app/"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, bucket.Options{})
			b.Put(map[string]string{"app/web.yaml": "one", "app/readme.md": "docs", ".sourceignore": "*.md\n"})
			b.create(func(s *sourcev1.BucketSpec) { s.Prefix = prefix })
			b.ready()
			b.Requests()
			b.ready()
			rest := []string{strings.TrimSpace("LIST " + prefix)}
			if prefix != "" { // the list does not have it
				rest = append([]string{"GET .sourceignore"}, rest...)
			}
			if diff := cmp.Diff(rest, b.Requests()); diff != "" {
				t.Errorf("requests at rest (-want +got):\n%s", diff)
			}
			b.Put(map[string]string{"app/web.yaml": "one", "app/readme.md": "docs", ".sourceignore": "*.txt\n"})
			b.ready()
			if diff := cmp.Diff([]string{"app/readme.md", "app/web.yaml"}, slices.Sorted(maps.Keys(b.files()))); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			b.Put(map[string]string{"app/web.yaml": "one", "app/readme.md": "docs"})
			b.ready()
			if diff := cmp.Diff([]string{"app/readme.md", "app/web.yaml"}, slices.Sorted(maps.Keys(b.files()))); diff != "" {
				t.Errorf("files without exclusions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsNotTaken: whatever goes wrong, the last artifact stays, and the condition says what to do.
func TestWhatIsNotTaken(t *testing.T) {
	good := map[string]string{"a": "one"}
	for name, tc := range map[string]struct {
		put    map[string]string
		edit   func(*sourcev1.BucketSpec)
		answer func(http.ResponseWriter, *http.Request) bool
		opts   bucket.Options
		want   string
		stalls bool
	}{
		"an empty bucket":                {put: map[string]string{}, want: "False BucketOperationFailed: no objects in bucket fleet that spec.prefix"},
		"nothing below the prefix":       {put: good, edit: func(s *sourcev1.BucketSpec) { s.Prefix = "b/" }, want: "False BucketOperationFailed: no objects"},
		"a key that leads upwards":       {put: map[string]string{"a": "one", "../etc/passwd": "x"}, want: `False BucketOperationFailed: the objects of bucket fleet are no tree of files: malformed archive: the name "../etc/passwd" leads`},
		"a key that leads up within":     {put: map[string]string{"a/../../b": "x"}, want: "False BucketOperationFailed: the objects of bucket fleet are no tree"},
		"a key from the root":            {put: map[string]string{"/etc/passwd": "x"}, want: "False BucketOperationFailed: the objects of bucket fleet are no tree"},
		"a key with an empty folder":     {put: map[string]string{"a//b": "x"}, want: `False BucketOperationFailed: the objects of bucket fleet are no tree of files: malformed archive: the name "a//b"`},
		"a key with a control character": {put: map[string]string{"a\nb": "x"}, want: "False BucketOperationFailed: the objects of bucket fleet are no tree"},
		"a file that is a folder":        {put: map[string]string{"a": "x", "a/b": "y"}, want: `False BucketOperationFailed: the objects of bucket fleet are no tree of files: malformed archive: "a" is a file and a folder`},
		"keys that differ in case alone": {put: map[string]string{"app/Web.yaml": "x", "app/web.yaml": "y"}, want: `False BucketOperationFailed: the objects of bucket fleet are no tree of files: malformed archive: the names "app/Web.yaml" and "app/web.yaml" differ only in case, or in how their letters are encoded, and are the same on many disks: rename that, or exclude it`},
		"keys that look the same":        {put: map[string]string{"caf\u00e9.yaml": "x", "cafe\u0301.yaml": "y"}, want: `False BucketOperationFailed: the objects of bucket fleet are no tree of files: malformed archive: the names "cafe\u0301.yaml" and "caf\u00e9.yaml" differ only`},
		"more files than may be":         {put: map[string]string{"a": "1", "b": "2", "c": "3"}, opts: bucket.Options{Limits: artifact.Limits{Files: 2}}, want: "False BucketOperationFailed: more than 2 files"},
		"more bytes than may be":         {put: map[string]string{"a": "123456"}, opts: bucket.Options{Limits: artifact.Limits{Unpacked: 5}}, want: "False BucketOperationFailed: more than 5 bytes"},
		"another bucket":                 {put: good, edit: func(s *sourcev1.BucketSpec) { s.BucketName = "other" }, want: "False BucketOperationFailed: list the objects of bucket other at HOST: not found: there is no such bucket"},
		"a Secret that is missing":       {put: good, edit: func(s *sourcev1.BucketSpec) { s.SecretRef.Name = "none" }, want: "False AuthenticationFailed: the Secret shop/none of spec.secretRef is not there: create it"},
		"a Secret without keys":          {put: good, edit: func(s *sourcev1.BucketSpec) { s.SecretRef.Name = "half" }, want: "False AuthenticationFailed: Secret shop/half of spec.secretRef: unusable credentials: it needs the keys accesskey and secretkey"},
		"no keys":                        {put: good, edit: func(s *sourcev1.BucketSpec) { s.SecretRef = nil }, want: "False AuthenticationFailed: list the objects of bucket fleet at HOST: access denied (HTTP 403): the server wants keys"},
		"a proxy that is none":           {put: good, edit: func(s *sourcev1.BucketSpec) { s.ProxySecretRef = &meta.LocalObjectReference{Name: "half"} }, want: "False AuthenticationFailed: Secret shop/half of spec.proxySecretRef: key address is missing"},
		"a certificate that is none":     {put: good, edit: func(s *sourcev1.BucketSpec) { s.CertSecretRef = &meta.LocalObjectReference{Name: "half"} }, want: "False AuthenticationFailed: Secret shop/half of spec.certSecretRef: unusable credentials"},
		"a service without a login": {put: good, edit: func(s *sourcev1.BucketSpec) {
			s.SecretRef, s.STS = nil, &sourcev1.BucketSTSSpec{Provider: "ldap", Endpoint: "https://sts.test"}
		}, want: "False AuthenticationFailed: spec.sts has no login", stalls: true},
		"a service with half a login": {put: good, edit: func(s *sourcev1.BucketSpec) {
			s.SecretRef, s.STS = nil, &sourcev1.BucketSTSSpec{Provider: "ldap", Endpoint: "https://sts.test", SecretRef: &meta.LocalObjectReference{Name: "half"}}
		}, want: "False AuthenticationFailed: Secret shop/half of spec.sts.secretRef: unusable credentials: it needs the keys username and password"},
		"an endpoint that is a URL":   {put: good, edit: func(s *sourcev1.BucketSpec) { s.Endpoint = "https://s3.test" }, want: "False URLInvalid: unusable address: spec.endpoint is host or host:port", stalls: true},
		"a cloud":                     {put: good, edit: func(s *sourcev1.BucketSpec) { s.Provider = "gcp" }, want: "False UnsupportedField: spec.provider gcp takes a flotillad that was built with -tags clouds", stalls: true},
		"a server that speaks no TLS": {put: good, edit: func(s *sourcev1.BucketSpec) { s.Insecure = false }, want: "False BucketOperationFailed: list the objects of bucket fleet at HOST: TLS failed: the server does not speak it: spec.insecure is for such"},
		"an address that is not allowed": {put: good, opts: bucket.Options{Servers: s3.Options{Egress: egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}},
			want: "False AddressNotAllowed: list the objects of bucket fleet at HOST: address not allowed: 127.0.0.1 leads to a loopback address", stalls: true},
		"a namespace that is full": {put: good, opts: bucket.Options{Namespaces: func(string) tenancy.Limits { return tenancy.Limits{tenancy.ArtifactSize: 1} }}, want: "False LimitExceeded: "},
		"an object that changes meanwhile": {put: good, answer: func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/a") {
				s3server.Refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
				return true
			}
			return false
		}, want: `False BucketOperationFailed: read object "a" of bucket fleet at HOST: changed while it was read`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tc.opts)
			b.add(secret("half", "accesskey", canary))
			b.Put(tc.put)
			b.Answer(tc.answer)
			b.create(tc.edit)
			if got, want := b.ready(), strings.ReplaceAll(tc.want, "HOST", b.host); !strings.HasPrefix(got, want) || strings.Contains(got, "CANARY") {
				t.Errorf("Ready is %q, want %q", got, want)
			}
			if stalls := slices.Contains(b.conditions(), "Stalled=True"); stalls != tc.stalls {
				t.Errorf("Stalled is %v, want %v", stalls, tc.stalls)
			}
			if a := b.object().Status.Artifact; a != nil {
				t.Errorf("there is an artifact: %+v", a)
			}
			writes := b.writes
			b.ready()
			if b.writes != writes {
				t.Errorf("the same fault was written again")
			}
		})
	}
}

// TestTheLastArtifactStays when the bucket is empty, or does not answer.
func TestTheLastArtifactStays(t *testing.T) {
	b := newBench(t, bucket.Options{})
	b.Put(map[string]string{"a": "one"})
	b.create(nil)
	b.ready()
	before := b.object().Status.Artifact
	b.Put(nil)
	if got := b.ready(); !strings.HasPrefix(got, "False BucketOperationFailed: no objects") {
		t.Error(got)
	}
	if diff := cmp.Diff(before, b.object().Status.Artifact); diff != "" {
		t.Errorf("artifact (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ArtifactInStorage=True", "FetchFailed=True", "Reconciling=True"}, b.conditions()); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	b.Put(map[string]string{"a": "one"})
	b.Requests()
	if got := b.ready(); !strings.HasPrefix(got, "True ") {
		t.Error(got)
	}
	if asked := b.Requests(); !slices.Equal(asked, []string{"LIST"}) {
		t.Errorf("asked %v", asked)
	}
}

func TestABusyServer(t *testing.T) {
	b := newBench(t, bucket.Options{})
	b.Put(map[string]string{"a": "one"})
	b.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "300")
		s3server.Refuse(w, http.StatusServiceUnavailable, "SlowDown")
		return true
	})
	b.create(nil)
	if result, err := b.reconcile(); err != nil || result.RequeueAfter != 5*time.Minute {
		t.Errorf("result = %v, %v", result, err)
	}
}

// TestWhatIsLostIsFetchedAgain: a store without the artifact has it again after the next look.
func TestWhatIsLostIsFetchedAgain(t *testing.T) {
	b := newBench(t, bucket.Options{})
	b.Put(map[string]string{"a": "one"})
	b.create(nil)
	b.ready()
	if err := b.store.Release(artifact.Owner(sourcev1.BucketKind, key.Namespace, key.Name)); err != nil {
		t.Fatal(err)
	}
	b.ready()
	if diff := cmp.Diff(map[string]string{"a": "one"}, b.files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestSuspendedAndDeleted(t *testing.T) {
	b := newBench(t, bucket.Options{})
	b.Put(map[string]string{"a": "one"})
	b.create(nil)
	b.ready()
	b.Requests()
	b.edit(func(s *sourcev1.BucketSpec) { s.Suspend = true })
	if result, err := b.reconcile(); err != nil || result.RequeueAfter != 0 {
		t.Errorf("result = %v, %v", result, err)
	}
	if asked := b.Requests(); len(asked) != 0 {
		t.Errorf("asked %v while suspended", asked)
	}
	digest := b.object().Status.Artifact.Digest
	if err := b.hub.Delete(t.Context(), b.object()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	if b.store.Has(digest) {
		t.Error("the artifact of a deleted Bucket is still there")
	}
}
