package apply_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Kustomization that deletes another one records before what others take over from that. If its status is written by
// somebody else at that moment, the run is repeated, and nobody is told of it: nothing has failed.
func TestAStatusThatAnotherOneWrites(t *testing.T) {
	w := newWorld(t)
	w.stop()
	var interferes sync.Once
	w.wrap = func(inner http.RoundTripper) http.RoundTripper {
		return beforeRecords{inner, func() {
			interferes.Do(func() {
				ks := &kustomizev1.Kustomization{}
				ks.Namespace, ks.Name = w.namespace, "inner"
				patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"lastHandledReconcileAt":"now"}}`))
				if err := w.Hub.Status().Patch(t.Context(), ks, patch); err != nil {
					t.Error(err)
				}
			})
		}}
	}
	w.start()
	first := w.commit(map[string]string{"app/child.yaml": child("inner", "inner"), "app/config.yaml": named("own"), "inner/config.yaml": configMaps(3)})
	w.kustomization("web")
	w.ready("web", first)
	w.ready("inner", first)
	t.Cleanup(func() { w.remove("inner"); w.remove("shop") })

	second := w.commit(map[string]string{"app/child.yaml": child("shop", "shop"), "app/config.yaml": named("own"), "shop/config.yaml": configMaps(3)})
	w.ready("web", second)
	w.ready("shop", second)
	interferes.Do(func() { t.Error("nobody recorded what is taken over") })
	if reasons := w.events.reasonsOf("web"); slices.Contains(reasons, meta.ReconciliationFailedReason) {
		t.Errorf("told as failed: %q", w.events.about("web"))
	}
}

// beforeRecords is a connection on which something happens before a status is written that records what others take over.
type beforeRecords struct {
	inner   http.RoundTripper
	happens func()
}

func (b beforeRecords) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPatch && strings.HasSuffix(req.URL.Path, "/kustomizations/inner/status") {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		if req.Body = io.NopCloser(bytes.NewReader(body)); bytes.Contains(body, []byte("undecided")) {
			b.happens()
		}
	}
	return b.inner.RoundTrip(req)
}
