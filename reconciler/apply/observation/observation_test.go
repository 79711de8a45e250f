package observation_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/observation"
	"github.com/flotilla-io/flotilla/reconciler/apply/watches"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// known are the templates that a watch has, by name.
type known map[string]*unstructured.Unstructured

func (known) Listen(templatestore.Listener) {}

func (k known) Get(_ context.Context, key templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error) {
	if obj := k[key.Name]; obj != nil {
		return obj, templatestore.Present, nil
	}
	return nil, templatestore.Unknown, nil
}

// TestObserve: what the revision holds is read, with the owner's labels: from watches where that is asked for and they
// have it, and else from the server.
func TestObserve(t *testing.T) {
	object := func(name, owner, from string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"from": from}}}
		obj.SetNamespace("shop")
		obj.SetName(name)
		obj.SetLabels(map[string]string{"kustomize.toolkit.fluxcd.io/name": owner, "kustomize.toolkit.fluxcd.io/namespace": "flux-system"})
		return obj
	}
	entry := func(name string) inventory.Entry {
		return inventory.Entry{ID: inventory.ID{Namespace: "shop", Name: name, GroupKind: schema.GroupKind{Kind: "ConfigMap"}}, Version: "v1"}
	}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		object("watched", "web", "server"), object("unwatched", "web", "server"), object("strange", "other", "server"), object("beside", "web", "server"),
	).Build()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	watched := known{"watched": object("watched", "web", "watch"), "strange": object("strange", "other", "watch"), "beside": object("beside", "web", "watch")}
	revision := []inventory.Entry{entry("watched"), entry("unwatched"), entry("strange"), entry("missing")}
	for name, tc := range map[string]struct {
		templates watches.Templates
		want      map[string]string
	}{
		"from the server": {nil, map[string]string{"watched": "server", "unwatched": "server", "strange": "", "missing": ""}},
		"from watches":    {watched, map[string]string{"watched": "watch", "unwatched": "server", "strange": "", "missing": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			owner := client.ObjectKey{Namespace: "flux-system", Name: "web"}
			got, err := observation.Read(t.Context(), applier.New(hub, mapper, applier.Options{}), owner, append(revision, entry("beside")), revision, tc.templates)
			if err != nil {
				t.Fatal(err)
			}
			from := map[string]string{}
			for id, obj := range got {
				if from[id.Name] = ""; obj != nil {
					from[id.Name], _, _ = unstructured.NestedString(obj.Object, "data", "from")
				}
			}
			if diff := cmp.Diff(tc.want, from); diff != "" {
				t.Errorf("read from (-want +got):\n%s", diff)
			}
		})
	}
}
