package apply_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// blocked expects the brake to refuse a revision, with this message.
func (w *world) blocked(revision, want string) {
	w.t.Helper()
	message := w.awaitReason("web", revision, inventory.ReasonPruneBlocked)
	want = "revision " + revision + " would remove " + want
	if got := strings.ReplaceAll(message, w.namespace, "NS"); !strings.HasPrefix(got, want) {
		w.t.Errorf("message = %q, want it to begin with %q", got, want)
	}
}

// If an edit of the Kustomization drops objects of a revision that is applied already, the message reports that.
func TestAnEditThatIsHeldByTheBrake(t *testing.T) {
	w := newWorld(t)
	revision := w.commit(map[string]string{"app/config.yaml": configMaps(20), "less/config.yaml": configMaps(10)})
	w.kustomization("web")
	w.ready("web", revision)
	w.change("web", in("./less"))
	w.blocked(revision, `10 of 20 objects (ConfigMap/NS/config-10, ConfigMap/NS/config-11, ConfigMap/NS/config-12 and 7 more): nothing more was applied; `+
		`commit them again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "`+revision+`"`)
}

// A commit that drops a namespace and still has objects in it cannot be applied, even if people allow the deletion.
func TestANamespaceGoesWithWhatIsInIt(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{
		"app/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: NAMESPACE-held}\n",
		"app/config.yaml":    strings.ReplaceAll(configMaps(2), "NAMESPACE", "NAMESPACE-held"),
		"app/other.yaml":     configMaps(8),
	}
	first := w.commit(files)
	w.kustomization("web")
	w.annotate("web", inventory.AllowPruneAnnotation, "namespace/"+w.namespace+"-held")
	w.ready("web", first)
	delete(files, "app/namespace.yaml")
	second := w.commit(files)
	message := strings.ReplaceAll(w.awaitReason("web", second, inventory.ReasonPruneBlocked), w.namespace, "NS")
	want := "revision " + second + " drops Namespace/NS-held and has ConfigMap/NS-held/config-00, ConfigMap/NS-held/config-01 in it: nothing was applied; drop that, too, or commit the namespace again"
	if message != want {
		t.Errorf("message = %q, want %q", message, want)
	}
}

// A commit that drops the manifest of a namespace, and nothing else, would delete all that is in it,
// whoever created it.
func TestANamespaceInUseStaysUnlessItIsNamed(t *testing.T) {
	w := newWorld(t)
	blocked := w.namespace + "-held"
	files := map[string]string{
		"app/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: NAMESPACE-held}\n",
		"app/config.yaml":    strings.ReplaceAll(configMaps(2), "NAMESPACE", "NAMESPACE-held"),
		"app/other.yaml":     configMaps(8),
	}
	first := w.commit(files)
	w.kustomization("web")
	w.ready("web", first)
	for i := range 3 {
		w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: blocked, Name: fmt.Sprintf("of-others-%d", i)}})
	}

	for _, cluster := range []string{"east", "west"} {
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workv1alpha2.ExecutionNamespace(w.namespace + "-" + cluster)}})
		w.create(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace(w.namespace + "-" + cluster), Name: workv1alpha2.WorkName("Namespace", blocked, "")}})
	}

	delete(files, "app/namespace.yaml")
	second := w.commit(files)
	w.blocked(second, `1 of 11 objects (Namespace/NS-held with 5 objects, in 2 clusters): nothing was applied; commit it again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "namespace/NS-held", or in a commit by the trailer Flotilla-Allow-Delete: namespace/NS-held`)
	w.annotate("web", inventory.AllowPruneAnnotation, "true")
	third := w.commit(map[string]string{"app/config.yaml": files["app/config.yaml"], "app/other.yaml": configMaps(9)})
	w.blocked(third, `1 of 11 objects (Namespace/NS-held with 5 objects, in 2 clusters)`)

	w.allows = "namespace/" + blocked
	files["app/other.yaml"] = configMaps(7)
	delete(files, "app/config.yaml")
	w.ready("web", w.commit(files))
	space := w.object("v1", "Namespace", "", blocked)
	if space != nil && space.GetDeletionTimestamp() == nil {
		t.Error("what the commit named stays")
	}
}

// A commit that drops a child Kustomization drops what that applied. What left a revision and was not allowed to be
// deleted, as a sibling wants it or may want it, counts when a later revision drops it.
func TestWhatASiblingMayWantIsNotLetGoOf(t *testing.T) {
	space := "apiVersion: v1\nkind: Namespace\nmetadata: {name: NAMESPACE-held}\n"
	for name, tc := range map[string]struct{ meanwhile, after, reason, allows string }{
		"a sibling cannot be built":          {named("z") + "oops: [", named("z"), siblings.ReasonHandingOver, `: "namespace/NS-held", or in a commit by the trailer Flotilla-Allow-Delete: namespace/NS-held`},
		"a sibling is to take it, and fails": {space + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: z, namespace: nowhere}\n", named("z"), siblings.ReasonHandingOver, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			blocked := w.namespace + "-held"
			files := map[string]string{"app/namespace.yaml": space, "app/config.yaml": configMaps(8), "other/config.yaml": named("z")}
			first := w.commit(files)
			w.kustomization("web")
			w.kustomization("other", in("./other"))
			w.ready("web", first)
			w.ready("other", first)
			w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: blocked, Name: "of-others"}})

			delete(files, "app/namespace.yaml")
			files["other/config.yaml"] = tc.meanwhile
			second := w.commit(files)
			if message := strings.ReplaceAll(w.awaitReason("web", second, tc.reason), w.namespace, "NS"); !strings.HasSuffix(message, tc.allows) {
				t.Errorf("message = %s", message)
			}
			files["other/config.yaml"] = tc.after
			third := w.commit(files)
			w.blocked(third, `1 of 9 objects (Namespace/NS-held with 1 object): nothing was applied; commit it again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "namespace/NS-held", or in a commit by the trailer Flotilla-Allow-Delete: namespace/NS-held`)
			if left := w.object("v1", "Namespace", "", blocked); left == nil || left.GetDeletionTimestamp() != nil {
				t.Error("the namespace is gone")
			}
		})
	}
}

func TestAChildGoesWithItsInventory(t *testing.T) {
	w := newWorld(t)
	child := `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: inner, namespace: NAMESPACE}
spec: {interval: 10m, path: ./inner, prune: true, sourceRef: {kind: GitRepository, name: fleet}}
`
	files := map[string]string{"app/child.yaml": child, "app/config.yaml": strings.ReplaceAll(configMaps(3), "config-", "own-"), "inner/config.yaml": configMaps(6)}
	first := w.commit(files)
	w.kustomization("web")
	w.ready("web", first)
	w.ready("inner", first)
	t.Cleanup(func() { w.remove("inner") })

	delete(files, "app/child.yaml")
	w.blocked(w.commit(files), `1 of 4 objects (Kustomization/NS/inner with 6 objects): nothing was applied;`)
	if w.configMap("config-05") == nil {
		t.Error("what the child applied is gone")
	}
}

// A commit that drops the Kustomization of an application is refused with the data that would be deleted, and applied
// once that is allowed by name.
func TestAClaimInAChildStaysUnlessItIsNamed(t *testing.T) {
	w := newWorld(t)
	blocked := w.namespace + "-held"
	files := map[string]string{
		"app/child.yaml": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: ledger, namespace: NAMESPACE}
spec: {interval: 10m, path: ./ledger, prune: true, sourceRef: {kind: GitRepository, name: fleet}}
`,
		"app/config.yaml":       configMaps(5),
		"ledger/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: NAMESPACE-held}\n",
		"ledger/claim.yaml": `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: NAMESPACE-held}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`,
		"ledger/config.yaml": strings.ReplaceAll(strings.ReplaceAll(configMaps(1), "config-", "ledger-"), "NAMESPACE", "NAMESPACE-held"),
	}
	first := w.commit(files)
	w.kustomization("web")
	w.ready("web", first)
	w.ready("ledger", first)
	w.create(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: blocked, Name: "of-others"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}})

	w.allows = "kustomization/" + w.namespace + "/ledger"
	second := w.commit(map[string]string{"app/config.yaml": files["app/config.yaml"]})
	w.blocked(second, `1 of 6 objects (Kustomization/NS/ledger with 4 objects: PersistentVolumeClaim/NS-held/data with its data, Namespace/NS-held, 1 PersistentVolumeClaim with data): nothing was applied; commit it again, `+
		`or allow it with the annotation kustomize.flotilla.io/allow-prune: "kustomization/NS/ledger, persistentvolumeclaim/NS-held/data", or in a commit by the trailer Flotilla-Allow-Delete: kustomization/NS/ledger, persistentvolumeclaim/NS-held/data`)
	if w.object("v1", "PersistentVolumeClaim", blocked, "data") == nil {
		t.Error("the claim is gone that nobody named")
	}

	w.allows += ",persistentvolumeclaim/" + blocked + "/data"
	w.ready("web", w.commit(map[string]string{"app/config.yaml": configMaps(6)}))
}

// A volume claim holds data: its deletion has to be allowed by its name.
func TestAClaimStaysUnlessItIsNamed(t *testing.T) {
	w := newWorld(t)
	claim := `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: NAMESPACE}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
	first := w.commit(map[string]string{"app/claim.yaml": claim, "app/config.yaml": configMaps(9)})
	w.kustomization("web")
	w.ready("web", first)
	second := w.commit(map[string]string{"app/config.yaml": configMaps(9)})
	w.blocked(second, `1 of 10 objects (PersistentVolumeClaim/NS/data): nothing was applied; commit it again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "persistentvolumeclaim/NS/data"`)
	w.annotate("web", inventory.AllowPruneAnnotation, "persistentvolumeclaim/"+w.namespace+"/data")
	w.ready("web", second)
}

// A commit that drops a Cluster removes all that runs there for the fleet, of any Kustomization.
func TestAClusterInUseStaysUnlessItIsNamed(t *testing.T) {
	w := newWorld(t)
	cluster := "site" + w.namespace[strings.LastIndex(w.namespace, "-"):]
	files := map[string]string{
		"app/cluster.yaml": "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + cluster + "}\nspec: {syncMode: Push}\n",
		"app/other.yaml":   configMaps(8),
	}
	w.kustomization("web")
	w.ready("web", w.commit(files))
	space := workv1alpha2.ExecutionNamespace(cluster)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}})
	for i := range 2 {
		w.create(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: fmt.Sprintf("of-others-%d", i)}})
	}
	delete(files, "app/cluster.yaml")
	w.blocked(w.commit(files), fmt.Sprintf("1 of 9 objects (Cluster/%s with 2 objects): nothing was applied; commit it again, or allow it with the annotation kustomize.flotilla.io/allow-prune: \"cluster/%[1]s\"", cluster))
	w.allows = "cluster/" + cluster
	files["app/other.yaml"] = configMaps(9)
	w.ready("web", w.commit(files))
	if left := w.object("cluster.karmada.io/v1alpha1", "Cluster", "", cluster); left != nil && left.GetDeletionTimestamp() == nil {
		t.Error("what the commit named stays")
	}
}
