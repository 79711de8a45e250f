package apply_test

import (
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/s3server"
	"github.com/flotilla-io/flotilla/sources/bucket"
	"github.com/flotilla-io/flotilla/sources/s3"
)

// TestObjectsOfABucketAreApplied: a Kustomization applies what a Bucket has fetched, and follows it at once. A bucket that is
// empty takes nothing down.
func TestObjectsOfABucketAreApplied(t *testing.T) {
	w := newWorld(t)
	objects := s3server.New("fleet", "")
	server := httptest.NewServer(objects)
	t.Cleanup(server.Close)
	source := &sourcev1.Bucket{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fleet"}}
	source.Spec = sourcev1.BucketSpec{Endpoint: server.Listener.Addr().String(), BucketName: "fleet", Insecure: true, Interval: metav1.Duration{Duration: time.Hour}}
	w.create(source)
	loop := bucket.New(w.Hub, w.store, w.events, bucket.Options{
		Servers: s3.Options{Egress: egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}},
	})
	fetch := func(text string) string {
		t.Helper()
		files := map[string]string{}
		if text != "" {
			files["app/app.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stored, namespace: " + w.namespace + "}\ndata: {text: " + text + "}\n"
		}
		objects.Put(files)
		if _, err := loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(source)}); err != nil {
			t.Fatal(err)
		}
		if err := w.Hub.Get(t.Context(), client.ObjectKeyFromObject(source), source); err != nil {
			t.Fatal(err)
		}
		return source.Status.Artifact.Revision
	}
	first := fetch("one")
	w.kustomization("stored", func(spec *kustomizev1.KustomizationSpec) { spec.SourceRef.Kind = sourcev1.BucketKind })
	w.ready("stored", first)
	second := fetch("two")
	w.ready("stored", second)
	if got, _, _ := unstructured.NestedString(w.configMap("stored").Object, "data", "text"); got != "two" || first == second {
		t.Errorf("what is applied says %q, want two", got)
	}
	if got := fetch(""); got != second {
		t.Errorf("an empty bucket made an artifact of %s", got)
	}
}
