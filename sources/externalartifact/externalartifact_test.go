package externalartifact_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/download"
	"github.com/flotilla-io/flotilla/sources/externalartifact"
)

var key = client.ObjectKey{Namespace: "shop", Name: "app"}

// bench is a reconciler between a server of files and a fake hub client.
type bench struct {
	t       *testing.T
	hub     client.Client
	writes  int
	events  []string
	store   *artifact.Store
	loop    *externalartifact.Reconciler
	content []byte // what the server has
	asked   int
	url     string
}

// Event records "<type> <reason>: <message>".
func (b *bench) Event(_ runtime.Object, kind, reason, message string) {
	b.events = append(b.events, kind+" "+reason+": "+message)
}

func newBench(t *testing.T, opts externalartifact.Options) *bench {
	t.Helper()
	b := &bench{t: t}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b.asked++
		if b.content == nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(b.content)
	}))
	t.Cleanup(server.Close)
	b.url = server.URL + "/app.tar.gz"
	b.hub = fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(&sourcev1.ExternalArtifact{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				b.writes++
				return c.Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	var err error
	if b.store, err = artifact.NewStore(t.TempDir(), artifact.Options{BaseURL: "http://hub/artifacts"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.store.Close() })
	opts.Jitter = func(d time.Duration) time.Duration { return d }
	if opts.Downloads.Egress.Networks == nil {
		opts.Downloads = download.Options{Egress: egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}
	}
	b.loop = externalartifact.New(b.hub, b.store, b, opts)
	object := &sourcev1.ExternalArtifact{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 1}}
	if err := b.hub.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	return b
}

// digest returns the name of content.
func digest(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

// pack returns an archive of one entry.
func pack(t *testing.T, header tar.Header, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	header.Size, header.Mode = int64(len(content)), 0o644
	if err := archive.WriteHeader(&header); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// twins is an archive with two folders whose names differ in case alone.
func twins(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := (artifact.Files{"App/a.yaml": {Data: []byte("a")}, "app/a.yaml": {Data: []byte("b")}}).Pack(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// name writes the status as the controller that makes the artifact does.
func (b *bench) name(revision, digest string) {
	b.t.Helper()
	object := b.object()
	object.Status.Artifact = &meta.Artifact{URL: b.url, Revision: revision, Digest: digest, LastUpdateTime: metav1.Now()}
	if err := b.hub.Status().Update(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) object() *sourcev1.ExternalArtifact {
	b.t.Helper()
	object := &sourcev1.ExternalArtifact{}
	if err := b.hub.Get(b.t.Context(), key, object); err != nil {
		b.t.Fatal(err)
	}
	return object
}

func (b *bench) reconcile() (reconcile.Result, error) {
	b.t.Helper()
	return b.loop.Reconcile(b.t.Context(), reconcile.Request{NamespacedName: key})
}

// said reconciles, and returns what the annotation says.
func (b *bench) said() string {
	b.t.Helper()
	if _, err := b.reconcile(); err != nil {
		b.t.Log(err)
	}
	return b.object().Annotations[gitopsv1alpha1.FetchedAnnotation]
}

func TestAnArtifactIsFetchedOnce(t *testing.T) {
	b := newBench(t, externalartifact.Options{})
	if got := b.said(); got != "" || b.asked != 0 {
		t.Errorf("without an artifact it says %q, and asked %d times", got, b.asked)
	}
	b.content = pack(t, tar.Header{Name: "app/web.yaml"}, "one")
	first := digest(b.content)
	b.name("main@sha1:1", first)
	before := b.object().Status
	for range 2 {
		if got := b.said(); got != first {
			t.Errorf("it says %q, want %s", got, first)
		}
	}
	if b.asked != 1 || b.writes != 1 {
		t.Errorf("asked %d times and wrote %d times, want once each", b.asked, b.writes)
	}
	files, err := b.store.Open(t.Context(), first)
	if err != nil || string(files["app/web.yaml"].Data) != "one" {
		t.Errorf("stored are %v, %v", files.Contents(), err)
	}
	if diff := cmp.Diff(before, b.object().Status); diff != "" {
		t.Errorf("the status, which others write (-before +after):\n%s", diff)
	}
	if result, err := b.reconcile(); err != nil || result.RequeueAfter != 10*time.Minute {
		t.Errorf("result = %v, %v", result, err)
	}
	if diff := cmp.Diff([]string{"Normal NewArtifact: fetched artifact of revision 'main@sha1:1'"}, b.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}

	// A store that has lost it has it again.
	if err := b.store.Release(artifact.Owner(sourcev1.ExternalArtifactKind, key.Namespace, key.Name)); err != nil {
		t.Fatal(err)
	}
	if b.said(); !b.store.Has(first) {
		t.Error("what was lost is not fetched again")
	}
	if err := b.hub.Delete(t.Context(), b.object()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.reconcile(); err != nil || b.store.Has(first) {
		t.Errorf("the artifact of a deleted object is still there: %v", err)
	}
}

// TestWhatIsNotTaken: the annotation names the artifact and says why, once, and what was there stays.
func TestWhatIsNotTaken(t *testing.T) {
	good := pack(t, tar.Header{Name: "a"}, "one")
	for name, tc := range map[string]struct {
		content []byte
		digest  string // in place of that of the content
		opts    externalartifact.Options
		says    string
		event   string
	}{
		"a file that is not there":       {digest: digest(good), says: "not found (HTTP 404)", event: "FetchFailed"},
		"another digest":                 {content: good, digest: digest(nil), says: "what its URL has is of another digest than the status says", event: "FetchFailed"},
		"a digest of another algorithm":  {content: good, digest: "sha512:00", says: "its digest is not of SHA-256", event: "InvalidArtifact"},
		"no archive":                     {content: []byte("text"), says: "malformed archive", event: "InvalidArtifact"},
		"an archive that leads out":      {content: pack(t, tar.Header{Name: "../x"}, "one"), says: `malformed archive: the name "../x" leads`, event: "InvalidArtifact"},
		"a link":                         {content: pack(t, tar.Header{Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, ""), says: `malformed archive: "x" is a link`, event: "InvalidArtifact"},
		"names that differ in case":      {content: twins(t), says: `malformed archive: the names "App" and "app" differ only in case, or in how their letters are encoded, and are the same on many disks: rename one`, event: "InvalidArtifact"},
		"more than may be":               {content: good, opts: externalartifact.Options{Limits: artifact.Limits{Unpacked: 2}}, says: "more than 2 bytes", event: "InvalidArtifact"},
		"a namespace that is full":       {content: good, opts: externalartifact.Options{Namespaces: func(string) tenancy.Limits { return tenancy.Limits{tenancy.ArtifactSize: 1} }}, says: "", event: "LimitExceeded"},
		"an address that is not allowed": {content: good, opts: externalartifact.Options{Downloads: download.Options{Egress: egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}}, says: "address not allowed: 127.0.0.1", event: "AddressNotAllowed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tc.opts)
			b.content = tc.content
			if tc.digest == "" {
				tc.digest = digest(tc.content)
			}
			b.name("main@sha1:1", tc.digest)
			for range 2 {
				if got := b.said(); !strings.HasPrefix(got, tc.digest+": ") || !strings.Contains(got, tc.says) {
					t.Errorf("it says %q, want %q", got, tc.says)
				}
			}
			if b.writes != 1 || len(b.events) != 1 || !slices.ContainsFunc(b.events, func(e string) bool { return strings.HasPrefix(e, "Warning "+tc.event+": ") }) {
				t.Errorf("wrote %d times, and told %q", b.writes, b.events)
			}
			if b.store.Has(tc.digest) {
				t.Error("it is stored")
			}
		})
	}
}
