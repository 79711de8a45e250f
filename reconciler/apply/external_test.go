package apply_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/download"
	"github.com/flotilla-io/flotilla/sources/externalartifact"
)

// TestAnArtifactOfOthersIsApplied: a Kustomization waits for the artifact that another controller has named, says why it does not
// come, and applies it as soon as it is in the store.
func TestAnArtifactOfOthersIsApplied(t *testing.T) {
	w := newWorld(t)
	var packed strings.Builder
	files := artifact.Files{"app/app.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: given, namespace: " + w.namespace + "}\n")}}
	if err := files.Pack(&packed); err != nil {
		t.Fatal(err)
	}
	there := false
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		if !there {
			rw.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = rw.Write([]byte(packed.String()))
	}))
	t.Cleanup(server.Close)
	source := &sourcev1.ExternalArtifact{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "given"}}
	w.create(source)
	source.Status.Artifact = &meta.Artifact{
		URL: server.URL + "/given.tar.gz", Path: "given.tar.gz", Revision: "latest@sha256:1", Digest: artifact.DigestOf([]byte(packed.String())), LastUpdateTime: metav1.NewTime(time.Now()),
	}
	if err := w.Hub.Status().Update(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	loop := externalartifact.New(w.Hub, w.store, w.events, externalartifact.Options{
		Downloads: download.Options{Egress: egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}},
	})
	fetch := func() {
		t.Helper()
		if _, err := loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(source)}); err != nil {
			t.Fatal(err)
		}
	}
	fetch()
	w.kustomization("given", func(spec *kustomizev1.KustomizationSpec) {
		spec.SourceRef.Kind, spec.SourceRef.Name = sourcev1.ExternalArtifactKind, "given"
	})
	if message := w.awaitReason("given", "", meta.ArtifactFailedReason); !strings.Contains(message, "was not fetched: get it from ") || !strings.Contains(message, "refused (HTTP 403)") {
		t.Errorf("the Kustomization says %q", message)
	}
	there = true
	fetch()
	w.ready("given", "latest@sha256:1")
}
