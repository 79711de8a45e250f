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
	"github.com/flotilla-io/flotilla/internal/ociserver"
	"github.com/flotilla-io/flotilla/sources/oci"
	"github.com/flotilla-io/flotilla/sources/ocirepository"
)

// TestArtifactsOfARegistryAreApplied: a Kustomization applies what an OCIRepository has fetched, follows its tag at once, and
// says which commit it was packed from; a GitRepository of the same name is something else.
func TestArtifactsOfARegistryAreApplied(t *testing.T) {
	w := newWorld(t)
	registry := ociserver.New()
	server := httptest.NewServer(registry)
	t.Cleanup(server.Close)
	push := func(text, commit string) string {
		t.Helper()
		digest, err := registry.Push(t.Context(), "app", "latest", map[string]string{
			"app/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: packed, namespace: " + w.namespace + "}\ndata: {text: " + text + "}\n",
		}, map[string]string{"org.opencontainers.image.revision": commit})
		if err != nil {
			t.Fatal(err)
		}
		return "latest@" + digest
	}
	source := &sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fleet"}}
	source.Spec = sourcev1.OCIRepositorySpec{URL: "oci://" + server.Listener.Addr().String() + "/app", Insecure: true, Interval: metav1.Duration{Duration: time.Hour}}
	w.create(source)
	loop := ocirepository.New(w.Hub, w.store, w.events, ocirepository.Options{
		Registries: oci.Options{Egress: egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}},
	})
	fetch := func() {
		t.Helper()
		if _, err := loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(source)}); err != nil {
			t.Fatal(err)
		}
	}

	first := push("one", "main@sha1:1")
	fetch()
	w.kustomization("packed", func(spec *kustomizev1.KustomizationSpec) { spec.SourceRef.Kind = sourcev1.OCIRepositoryKind })
	ks := w.ready("packed", first)
	if got := ks.Status.LastAppliedOriginRevision; got != "main@sha1:1" {
		t.Errorf("it was packed from %q, want main@sha1:1", got)
	}
	second := push("two", "main@sha1:2")
	fetch()
	w.ready("packed", second)
	if got, _, _ := unstructured.NestedString(w.configMap("packed").Object, "data", "text"); got != "two" {
		t.Errorf("what is applied says %q, want two", got)
	}
	w.commit(map[string]string{"app/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: written, namespace: NAMESPACE}\n"})
	w.kustomization("written")
	w.until("written", func() (bool, string) { return w.configMap("written") != nil, "nothing" })
	if got := w.get("packed").Status.LastAppliedRevision; got != second {
		t.Errorf("a commit to the GitRepository of that name made it %s, want %s", got, second)
	}
}
