package apply_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestWhatGoesAlongStaysWithItsUser: a commit by which a policy takes along no more what its Deployment still refers to is
// refused, and applied once somebody allows it.
func TestWhatGoesAlongStaysWithItsUser(t *testing.T) {
	w := newWorld(t)
	const policy = `apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: NAMESPACE}
spec: {propagateDeps: true, resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}], placement: {}}
`
	const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NAMESPACE}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: app, envFrom: [{configMapRef: {name: config-00}}, {configMapRef: {name: config-01}}]}]}}
`
	files := map[string]string{"app/web.yaml": deployment, "app/policy.yaml": policy, "app/config.yaml": configMaps(3)}
	first := w.commit(files)
	w.kustomization("web")
	w.ready("web", first)
	bound := func(kind, name string, change func(*workv1alpha2.ResourceBindingSpec)) {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: workv1alpha2.BindingName(kind, name)}}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: kind, Namespace: w.namespace, Name: name}
		change(&b.Spec)
		w.create(b)
		w.seen(b)
	}
	clusters := []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "west"}}
	bound("Deployment", "web", func(spec *workv1alpha2.ResourceBindingSpec) {
		spec.Resource.APIVersion, spec.PropagateDeps, spec.Clusters = "apps/v1", true, clusters
	})
	for n := range 2 {
		bound("ConfigMap", fmt.Sprintf("config-%02d", n), func(spec *workv1alpha2.ResourceBindingSpec) {
			spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: w.namespace, Name: workv1alpha2.BindingName("Deployment", "web"), Clusters: clusters}}
		})
	}

	files["app/policy.yaml"] = strings.Replace(policy, "propagateDeps: true, ", "", 1)
	second := w.commit(files)
	want := "propagateDeps is off, and Deployment NS/web still refers to what went along: PropagationPolicy/NS/web would take 2 objects (ConfigMap NS/config-00, ConfigMap NS/config-01) out of east, west; " +
		"revision " + second + ` is not applied: correct it, or allow it with the annotation kustomize.flotilla.io/allow-prune: "` + second + `", or in a commit by the trailer Flotilla-Allow-Delete: propagationpolicy/NS/web`
	if got := strings.ReplaceAll(w.awaitReason("web", second, inventory.ReasonPruneBlocked), w.namespace, "NS"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	takesAlong := func() bool {
		t.Helper()
		obj := w.object("policy.karmada.io/v1alpha1", "PropagationPolicy", w.namespace, "web")
		spec, _ := obj.Object["spec"].(map[string]any)
		return spec["propagateDeps"] == true
	}
	if !takesAlong() {
		t.Error("the policy was changed")
	}
	w.allows = "propagationpolicy/" + w.namespace + "/web"
	files["app/config.yaml"] = configMaps(4)
	w.ready("web", w.commit(files))
	if takesAlong() {
		t.Error("the policy takes along what it did, although that is not asked for")
	}
	if err := w.Hub.DeleteAllOf(t.Context(), &workv1alpha2.ResourceBinding{}, client.InNamespace(w.namespace)); err != nil {
		t.Fatal(err)
	}
}
