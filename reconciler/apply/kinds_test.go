package apply_test

import (
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
)

// gadgets are a kind of the test's own.
type gadgets struct {
	*world
	group string
}

func newGadgets(t *testing.T) gadgets {
	t.Helper()
	w := newWorld(t)
	return gadgets{w, strings.TrimPrefix(w.namespace, "t-") + ".example.com"}
}

// definition returns the kind's CustomResourceDefinition with the versions that it serves.
func (g gadgets) definition(versions ...string) string {
	text := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets." + g.group + "}\n" +
		"spec:\n  group: " + g.group + "\n  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}\n  scope: Namespaced\n  versions:\n"
	for i, version := range versions {
		stored := "false"
		if i == 0 {
			stored = "true"
		}
		text += "    - {name: " + version + ", served: true, storage: " + stored + ", schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer}}}}}\n"
	}
	return text
}

// gadget is one of the kind.
func (g gadgets) gadget(version string) string {
	return "apiVersion: " + g.group + "/" + version + "\nkind: Gadget\nmetadata: {name: one, namespace: " + g.namespace + "}\nsize: 3\n"
}

// have reports whether the gadget exists in a version, which may not be served yet.
func (g gadgets) have(version string) bool {
	g.t.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(g.group + "/" + version)
	obj.SetKind("Gadget")
	err := g.Hub.Get(g.t.Context(), client.ObjectKey{Namespace: g.namespace, Name: "one"}, obj)
	if err != nil && !apierrors.IsNotFound(err) && !apimeta.IsNoMatchError(err) {
		g.t.Fatal(err)
	}
	return err == nil
}

// undefine deletes the definition, and waits until it is gone with all of its kind.
func (g gadgets) undefine() {
	g.t.Helper()
	if crd := g.crd(); crd != nil { // else its Kustomization has deleted it by now
		if err := g.Hub.Delete(g.t.Context(), crd); client.IgnoreNotFound(err) != nil {
			g.t.Fatal(err)
		}
	}
	g.until("the definition gone", func() (bool, string) { return g.crd() == nil, "still there" })
}

func (g gadgets) crd() *unstructured.Unstructured {
	return g.object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "gadgets."+g.group)
}

func (g gadgets) gone(ks *kustomizev1.Kustomization) {
	g.t.Helper()
	g.until("the Kustomization gone", func() (bool, string) {
		var left kustomizev1.Kustomization
		err := g.Hub.Get(g.t.Context(), client.ObjectKeyFromObject(ks), &left)
		if err != nil {
			return client.IgnoreNotFound(err) == nil, err.Error()
		}
		return false, ready(&left)
	})
}

func ready(ks *kustomizev1.Kustomization) string {
	for _, c := range ks.Status.Conditions {
		if c.Type == meta.ReadyCondition {
			return c.Reason + ": " + c.Message
		}
	}
	return "no condition"
}

// at has a Kustomization apply another folder.
func at(path string) func(*kustomizev1.KustomizationSpec) {
	return func(spec *kustomizev1.KustomizationSpec) { spec.Path = path }
}

// The deletion of a definition deletes all objects of its kind. The loop still has
// these in its inventory, and deletes them without an error.
func TestTheDefinitionIsDeletedFirst(t *testing.T) {
	g := newGadgets(t)
	revision := g.commit(map[string]string{
		"kinds/crd.yaml": g.definition("v1"), "app/gadget.yaml": g.gadget("v1"), "app/config.yaml": configMaps(1),
	})
	g.kustomization("kinds", at("./kinds"))
	kinds := g.ready("kinds", revision)
	g.kustomization("web")
	web := g.ready("web", revision)
	if !g.have("v1") {
		t.Fatal("there is no gadget")
	}
	if err := g.Hub.Delete(t.Context(), kinds); err != nil {
		t.Fatal(err)
	}
	g.gone(kinds)
	g.undefine()
	if err := g.Hub.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	g.gone(web)
	if g.configMap("config-00") != nil {
		t.Error("what the Kustomization had beside the gadget is still there")
	}
}

func TestADefinitionThatSomebodyDeletedComesBack(t *testing.T) {
	g := newGadgets(t)
	revision := g.commit(map[string]string{"app/crd.yaml": g.definition("v1"), "app/gadget.yaml": g.gadget("v1")})
	g.kustomization("web")
	g.ready("web", revision)
	g.undefine()
	g.annotate("web", meta.ReconcileRequestAnnotation, "now")
	g.until("the gadget back", func() (bool, string) { return g.have("v1"), ready(g.get("web")) })
	g.ready("web", revision)
}

func TestAVersionThatIsServedNoMore(t *testing.T) {
	g := newGadgets(t)
	first := g.commit(map[string]string{"kinds/crd.yaml": g.definition("v1", "v1beta1"), "app/gadget.yaml": g.gadget("v1beta1")})
	g.kustomization("kinds", at("./kinds"))
	g.ready("kinds", first)
	g.kustomization("web")
	g.ready("web", first)
	g.change("kinds", func(spec *kustomizev1.KustomizationSpec) { spec.Suspend = true })
	crd := g.crd()
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	g.edit(crd, versions[:1], "spec", "versions")
	g.until("the old version gone", func() (bool, string) { return !g.have("v1beta1"), "still served" })

	old := g.commit(map[string]string{"app/gadget.yaml": g.gadget("v1beta1"), "app/config.yaml": configMaps(1)})
	if message := g.awaitReason("web", old, applier.ReasonUnknownKind); !strings.Contains(message, "v1beta1") {
		t.Errorf("of a version that is served no more it says %q", message)
	}
	g.ready("web", g.commit(map[string]string{"app/gadget.yaml": g.gadget("v1"), "app/config.yaml": configMaps(1)}))
	if !g.have("v1") {
		t.Error("there is no gadget of the version that is served")
	}
}

// A kind whose names another one has is never served. After the timeout that is a failure, which names the cause and
// ends the frequent retries.
func TestAKindWhoseNamesAreTaken(t *testing.T) {
	g := newGadgets(t)
	first := g.commit(map[string]string{"kinds/crd.yaml": g.definition("v1"), "app/config.yaml": configMaps(1)})
	g.kustomization("kinds", at("./kinds"))
	g.ready("kinds", first)
	gizmo := strings.NewReplacer("gadgets."+g.group, "gizmos."+g.group, "kind: Gadget,", "kind: Gizmo,", "GadgetList", "GizmoList", "plural: gadgets", "plural: gizmos", "singular: gadget", "shortNames: [gadgets], singular: gizmo")
	files := map[string]string{
		"kinds/crd.yaml": g.definition("v1"), "app/config.yaml": configMaps(1),
		"app/crd.yaml":   gizmo.Replace(g.definition("v1")),
		"app/gizmo.yaml": strings.ReplaceAll(g.gadget("v1"), "Gadget", "Gizmo"),
	}
	g.kustomization("web", func(spec *kustomizev1.KustomizationSpec) { spec.Timeout = &metav1.Duration{Duration: time.Second} })
	message := g.awaitReason("web", g.commit(files), applier.ReasonUnknownKind)
	if !strings.Contains(message, "CustomResourceDefinition/gizmos."+g.group+": its names are not accepted: ") || !strings.Contains(message, "gadgets") {
		t.Errorf("it says %q", message)
	}
}
