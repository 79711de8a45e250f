package apply_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// named returns the manifest of a ConfigMap.
func named(names ...string) string {
	out := ""
	for _, name := range names {
		out += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: NAMESPACE}\n"
	}
	return out
}

// in changes a Kustomization's path, and what it depends on.
func in(path string, dependsOn ...string) func(*kustomizev1.KustomizationSpec) {
	return func(spec *kustomizev1.KustomizationSpec) {
		spec.Path = path
		for _, name := range dependsOn {
			spec.DependsOn = append(spec.DependsOn, kustomizev1.DependencyReference{Name: name})
		}
	}
}

// uids returns the UIDs of ConfigMaps; empty for one that does not exist or is being deleted.
func (w *world) uids(names ...string) map[string]types.UID {
	w.t.Helper()
	out := map[string]types.UID{}
	for _, name := range names {
		if obj := w.configMap(name); obj != nil && obj.GetDeletionTimestamp() == nil {
			out[name] = obj.GetUID()
		}
	}
	return out
}

// holds expects a Kustomization to own these ConfigMaps, and no others.
func (w *world) holds(name string, configs ...string) {
	w.t.Helper()
	var got []string
	for _, id := range inventoryOf(w.get(name)) {
		got = append(got, strings.TrimSuffix(strings.TrimPrefix(id, "NAMESPACE_"), "__ConfigMap"))
	}
	slices.Sort(got)
	if diff := cmp.Diff(configs, got); diff != "" {
		w.t.Errorf("inventory of %s (-want +got):\n%s", name, diff)
	}
	for _, config := range configs {
		if holder := w.configMap(config).GetLabels()["kustomize.toolkit.fluxcd.io/name"]; holder != name {
			w.t.Errorf("%s is %q's, want %s", config, holder, name)
		}
	}
}

// An object whose manifest moves to a Kustomization which is applied later, as it depends on the first, is
// not deleted meanwhile.
func TestAManifestMovesToAnotherKustomization(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"app/config.yaml": named("a", "b"), "later/config.yaml": named("z")})
	w.kustomization("web")
	w.kustomization("later", in("./later", "web"))
	w.ready("web", first)
	w.ready("later", first)
	want := w.uids("a", "b", "z")

	second := w.commit(map[string]string{"app/config.yaml": named("a"), "later/config.yaml": named("b", "z")})
	w.ready("web", second)
	w.ready("later", second)
	if diff := cmp.Diff(want, w.uids("a", "b", "z")); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
	w.holds("web", "a")
	w.holds("later", "b", "z")

	third := w.commit(map[string]string{"app/config.yaml": named("a"), "later/config.yaml": named("z")})
	w.ready("later", third)
	if w.configMap("b") != nil {
		t.Error("what left both stays")
	}
}

// While a sibling cannot be built, it is not known whether it wants what left: that stays until the sibling is mended,
// or people allow the deletion. Those that depend on the first go on meanwhile.
func TestWhatMayHaveMovedStays(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{"app/config.yaml": named("a", "b", "c"), "other/config.yaml": named("z"), "third/config.yaml": named("y")}
	first := w.commit(files)
	w.kustomization("web")
	w.kustomization("other", in("./other"))
	w.kustomization("third", in("./third", "web"), func(spec *kustomizev1.KustomizationSpec) {
		spec.RetryInterval = &metav1.Duration{Duration: 10 * time.Minute} // so that only a watch can start the next run
	})
	w.ready("web", first)
	w.ready("other", first)
	want := w.uids("a", "b", "z")

	files["app/config.yaml"], files["other/config.yaml"] = named("a"), named("b", "z")+"oops: ["
	bad := w.commit(files)
	message := w.awaitReason("web", bad, siblings.ReasonHandingOver)
	wantMessage := "Applied revision " + bad + "; ConfigMap/NS/b, ConfigMap/NS/c left this one and stay: nobody can tell whether Kustomization NS/other wants them, as that cannot be built; " +
		"mend that, or allow the removal with the annotation kustomize.flotilla.io/allow-prune: \"" + bad + "\", or in a commit by the trailer Flotilla-Allow-Delete: configmap/NS/b, configmap/NS/c"
	if diff := cmp.Diff(wantMessage, strings.ReplaceAll(message, w.namespace, "NS")); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	w.ready("third", bad)
	files["third/config.yaml"] = named("y", "x")
	bad = w.commit(files)
	w.awaitReason("web", bad, siblings.ReasonHandingOver)
	w.ready("third", bad)

	files["other/config.yaml"] = named("b", "z")
	good := w.commit(files)
	w.ready("web", good)
	w.ready("other", good)
	if diff := cmp.Diff(want, w.uids("a", "b", "c", "z")); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
	w.holds("web", "a")
	w.holds("other", "b", "z")

	files["app/config.yaml"], files["other/config.yaml"] = named("d"), "oops: ["
	bad = w.commit(files)
	message = w.awaitReason("web", bad, siblings.ReasonHandingOver)
	if !strings.HasSuffix(message, `: "configmap/`+w.namespace+`/a", or in a commit by the trailer Flotilla-Allow-Delete: configmap/`+w.namespace+"/a") {
		t.Errorf("message = %s", message)
	}
	w.annotate("web", inventory.AllowPruneAnnotation, "configmap/"+w.namespace+"/a")
	w.ready("web", bad)
	w.holds("web", "d")
}

// Two Kustomizations that swap objects both keep what they got.
func TestKustomizationsThatSwap(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"app/config.yaml": named("a", "b"), "other/config.yaml": named("y", "z")})
	w.kustomization("web")
	w.kustomization("other", in("./other"))
	w.ready("web", first)
	w.ready("other", first)
	want := w.uids("a", "b", "y", "z")
	second := w.commit(map[string]string{"app/config.yaml": named("y", "z"), "other/config.yaml": named("a", "b")})
	w.ready("web", second)
	w.ready("other", second)
	if diff := cmp.Diff(want, w.uids("a", "b", "y", "z")); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
	w.holds("web", "y", "z")
	w.holds("other", "a", "b")
}

// An object in two Kustomizations is refused for the one that gets it later, until the other one
// has given it up.
func TestAnObjectInTwoKustomizations(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{"app/config.yaml": named("a"), "other/config.yaml": named("z")}
	first := w.commit(files)
	w.kustomization("web")
	w.kustomization("other", in("./other"))
	w.ready("web", first)
	w.ready("other", first)

	files["app/config.yaml"] = named("a", "b", "z")
	second := w.commit(files)
	w.ready("other", second)
	message := strings.ReplaceAll(w.awaitReason("web", second, siblings.ReasonSharedObject), w.namespace, "NS")
	if want := "ConfigMap/NS/z stands in Kustomization NS/other and in NS/web: remove it from one of them; until then revision " + second + " is not applied here"; message != want {
		t.Errorf("message = %s\nwant %s", message, want)
	}
	w.holds("other", "z")
	if w.configMap("b") != nil {
		t.Error("a revision was applied in part")
	}
	files["other/config.yaml"] = named("y")
	third := w.commit(files)
	w.ready("other", third)
	w.ready("web", third)
	w.holds("web", "a", "b", "z")

	files["app/config.yaml"], files["other/config.yaml"] = named("a", "b", "new", "z"), named("new", "y")
	fourth := w.commit(files)
	w.until("one has it, and the other one is refused", func() (bool, string) {
		var reasons []string
		for _, name := range []string{"web", "other"} {
			ks := w.get(name)
			ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
			if ks.Status.LastAttemptedRevision != fourth {
				return false, name + " is at " + ks.Status.LastAttemptedRevision
			}
			reasons = append(reasons, ready.Reason)
		}
		slices.Sort(reasons)
		return slices.Equal(reasons, []string{meta.ReconciliationSucceededReason, siblings.ReasonSharedObject}), strings.Join(reasons, ", ")
	})
}

// An object that waits to be replaced, and that another Kustomization takes over meanwhile, belongs to that one: the
// first, for which the commit changes nothing, does not report it any more.
func TestWhatWaitsToBeReplacedIsTaken(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{"app/config.yaml": named("d", "stay"), "other/config.yaml": named("z")}
	first := w.commit(files)
	w.kustomization("web", func(spec *kustomizev1.KustomizationSpec) { spec.Wait = true })
	w.kustomization("other", in("./other"))
	w.ready("web", first)
	w.ready("other", first)
	want := w.uids("d", "stay", "z")

	files["app/config.yaml"] = named("stay") + "---\n" + strings.Replace(namedDeploy, "d-${TOKEN}", "e", 1)
	second := w.commit(files)
	w.ready("other", second)
	w.until("d waits to be replaced", func() (bool, string) {
		ready := apimeta.FindStatusCondition(w.get("web").Status.Conditions, meta.ReadyCondition)
		return ready != nil && strings.Contains(ready.Message, "what left it stays until then: ConfigMap/"+w.namespace+"/d"), ready.Message
	})

	files["other/config.yaml"] = named("d", "z")
	third := w.commit(files)
	w.ready("other", third)
	w.holds("other", "d", "z")
	w.until("web has given it up", func() (bool, string) {
		ks := w.get("web")
		ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
		entries := strings.Join(inventoryOf(ks), " ")
		return ks.Status.LastAttemptedRevision == third && !strings.Contains(entries, "_d__") && strings.Contains(entries, "_e_") &&
			!strings.Contains(ready.Message, "what left it") && strings.Contains(ready.Message, "Deployment/"+w.namespace+"/e"), entries + ": " + ready.Message
	})
	if diff := cmp.Diff(want, w.uids("d", "stay", "z")); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
}

// leftAsItIs returns the manifest of the ConfigMap x with an apply mode.
func leftAsItIs(mode string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: NAMESPACE, annotations: {kustomize.toolkit.fluxcd.io/ssa: " + mode + "}}\ndata: {by: other}\n"
}

// An object that is left as it is changes hands all the same: once its owner has given it up, its labels name the new
// one, and it is deleted with that.
func TestWhatIsLeftAsItIsChangesHands(t *testing.T) {
	for _, mode := range []string{"IfNotPresent", "Ignore"} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			files := map[string]string{"app/config.yaml": named("a", "x"), "other/config.yaml": named("z")}
			first := w.commit(files)
			w.kustomization("web")
			w.kustomization("other", in("./other"))
			w.ready("web", first)
			w.ready("other", first)
			want := w.uids("a", "x", "z")

			files["app/config.yaml"], files["other/config.yaml"] = named("a"), named("z")+leftAsItIs(mode)
			moved := w.commit(files)
			w.ready("web", moved)
			w.ready("other", moved)
			w.holds("web", "a")
			w.holds("other", "x", "z")
			if diff := cmp.Diff(want, w.uids("a", "x", "z")); diff != "" {
				t.Errorf("the objects (-before +after):\n%s", diff)
			}
			if data := w.configMap("x").Object["data"]; data != nil {
				t.Errorf("its content became %v", data)
			}

			files["other/config.yaml"] = named("z")
			gone := w.commit(files)
			w.ready("other", gone)
			if w.configMap("x") != nil {
				t.Error("what left both stays")
			}
		})
	}
}

// An object that one Kustomization leaves as it is stays with its owner as long as that wants it.
func TestWhatIsLeftAsItIsStaysWithWhoWantsIt(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{"app/config.yaml": named("a", "x"), "other/config.yaml": named("z") + leftAsItIs("IfNotPresent")}
	first := w.commit(map[string]string{"app/config.yaml": named("a", "x"), "other/config.yaml": named("z")})
	w.kustomization("web")
	w.kustomization("other", in("./other"))
	w.ready("web", first)
	w.ready("other", first)

	both := w.commit(files)
	w.ready("web", both)
	w.ready("other", both)
	w.holds("web", "a", "x")

	files["app/config.yaml"] = "oops: ["
	bad := w.commit(files)
	w.annotate("other", meta.ReconcileRequestAnnotation, "again")
	w.until("it looked again", func() (bool, string) {
		ks := w.get("other")
		return ks.Status.LastHandledReconcileAt == "again" && ks.Status.LastAppliedRevision == bad, ks.Status.LastAppliedRevision
	})
	w.holds("web", "a", "x")

	files["app/config.yaml"] = named("a") // which changes nothing for the other one
	good := w.commit(files)
	w.ready("web", good)
	w.ready("other", good)
	w.holds("web", "a")
	w.holds("other", "x", "z")
}

const childOf = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: NAME, namespace: NAMESPACE}
spec: {interval: 10m, retryInterval: 1s, path: ./PATH, prune: true, sourceRef: {kind: GitRepository, name: fleet}}
`

func child(name, path string) string {
	return strings.NewReplacer("NAME,", name+",", "PATH", path).Replace(childOf)
}

// A child Kustomization that is renamed, and moved to another folder, hands all its objects over to its
// successor before it is gone.
func TestAChildThatIsRenamed(t *testing.T) {
	w := newWorld(t)
	configs := []string{"config-00", "config-01", "config-02", "config-03", "config-04", "config-05", "config-06"}
	files := map[string]string{"app/child.yaml": child("inner", "inner"), "app/config.yaml": named("own"), "inner/config.yaml": configMaps(7)}
	first := w.commit(files)
	w.kustomization("web")
	w.ready("web", first)
	w.ready("inner", first)
	t.Cleanup(func() { w.remove("inner"); w.remove("shop") })
	want := w.uids(configs...)

	files = map[string]string{"app/child.yaml": child("shop", "shop"), "app/config.yaml": named("own"), "shop/config.yaml": configMaps(7)}
	second := w.commit(files)
	w.ready("web", second)
	w.ready("shop", second)
	w.until("the old one is gone", func() (bool, string) {
		return w.object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.namespace, "inner") == nil, ""
	})
	if diff := cmp.Diff(want, w.uids(configs...)); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
	w.holds("shop", configs...)
}

// The only child of a Kustomization can be renamed: the brake counts what is lost, and that is nothing.
func TestTheOnlyChildThatIsRenamed(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"app/child.yaml": child("inner", "inner"), "inner/config.yaml": configMaps(2)})
	w.kustomization("web")
	w.ready("web", first)
	w.ready("inner", first)
	t.Cleanup(func() { w.remove("inner"); w.remove("shop") })
	want := w.uids("config-00", "config-01")

	second := w.commit(map[string]string{"app/child.yaml": child("shop", "inner"), "inner/config.yaml": configMaps(2)})
	w.ready("web", second)
	w.ready("shop", second)
	w.until("the old one is gone", func() (bool, string) {
		return w.object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.namespace, "inner") == nil, ""
	})
	if diff := cmp.Diff(want, w.uids("config-00", "config-01")); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
	w.holds("shop", "config-00", "config-01")
}

// A child whose new name comes with a mistake loses nothing: the old one stays until the new one is
// mended.
func TestAChildThatIsRenamedWithAMistake(t *testing.T) {
	w := newWorld(t)
	configs := []string{"config-00", "config-01", "config-02"}
	files := map[string]string{"app/child.yaml": child("inner", "inner"), "app/config.yaml": named("own"), "inner/config.yaml": configMaps(3)}
	first := w.commit(files)
	w.kustomization("web")
	w.ready("web", first)
	w.ready("inner", first)
	t.Cleanup(func() { w.remove("inner"); w.remove("shop") })
	want := w.uids(configs...)

	files["app/child.yaml"] = child("shop", "iner")
	bad := w.commit(files)
	if message := w.awaitReason("web", bad, siblings.ReasonHandingOver); !strings.Contains(message, "Kustomization "+w.namespace+"/shop wants it") {
		t.Errorf("message = %s", message)
	}
	w.awaitReason("shop", bad, builder.ReasonPathNotFound)
	if diff := cmp.Diff(want, w.uids(configs...)); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
	files["app/child.yaml"] = child("shop", "inner")
	good := w.commit(files)
	w.ready("shop", good)
	w.until("the old one is gone", func() (bool, string) {
		return w.object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.namespace, "inner") == nil, ""
	})
	if diff := cmp.Diff(want, w.uids(configs...)); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
	w.holds("shop", configs...)
}

// Objects also change hands when the source ignores other files than before: the commit is the
// same, but the artifact is another one.
func TestWhatMovesWithoutACommit(t *testing.T) {
	w := newWorld(t)
	w.revision = "main@sha1:0123456789012345678901234567890123456789"
	w.commit(map[string]string{"app/config.yaml": named("a"), "later/config.yaml": named("b", "z")})
	w.kustomization("web")
	w.kustomization("later", in("./later", "web"))
	w.ready("web", w.revision)
	w.ready("later", w.revision)
	want := w.uids("a", "b", "z")
	w.commit(map[string]string{"app/config.yaml": named("a", "b"), "later/config.yaml": named("z")})
	w.until("web has b", func() (bool, string) { return len(inventoryOf(w.get("web"))) == 2, "" })
	w.until("later has z", func() (bool, string) { return len(inventoryOf(w.get("later"))) == 1, "" })
	w.commit(map[string]string{"app/config.yaml": named("a"), "later/config.yaml": named("b", "z")})
	w.until("later has b", func() (bool, string) { return len(inventoryOf(w.get("later"))) == 2, "" })
	w.until("web has a", func() (bool, string) { return len(inventoryOf(w.get("web"))) == 1, "" })
	if diff := cmp.Diff(want, w.uids("a", "b", "z")); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
}

// An object that its new Kustomization must not write is not written, and changes its owner all the same.
func TestWhatMovesAndIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"app/config.yaml": named("a", "b"), "other/config.yaml": named("z")})
	w.kustomization("web")
	w.kustomization("other", in("./other"))
	w.ready("web", first)
	w.ready("other", first)
	left := strings.ReplaceAll(named("b"), "NAMESPACE}", "NAMESPACE, annotations: {kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}}")
	second := w.commit(map[string]string{"app/config.yaml": named("a"), "other/config.yaml": named("z") + left})
	w.ready("other", second)
	w.ready("web", second)
	w.holds("web", "a")
	if len(w.uids("a", "b", "z")) != 3 {
		t.Errorf("there is %v", w.uids("a", "b", "z"))
	}
}

// The deletion of a source does not delete objects that are moving from one of its Kustomizations to another.
func TestASourceThatGoesWhileObjectsMove(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"app/config.yaml": named("a", "b"), "other/config.yaml": named("z")})
	w.kustomization("web")
	w.ready("web", first)
	want := w.uids("a", "b")
	w.kustomization("heir", in("./app", "nobody"))
	w.awaitReason("heir", first, meta.DependencyNotReadyReason)
	ks := w.get("web")
	if err := w.Hub.Delete(t.Context(), ks); err != nil {
		t.Fatal(err)
	}
	waits := func() (bool, string) {
		for _, c := range w.get("web").Status.Conditions {
			if c.Type == "Ready" {
				return c.Reason == siblings.ReasonHandingOver && strings.Contains(c.Message, "/heir"), c.Message
			}
		}
		return false, ""
	}
	w.until("the old one waits", waits)
	repository := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fleet"}}
	if err := w.Hub.Delete(t.Context(), repository); err != nil {
		t.Fatal(err)
	}
	w.stop()
	w.start()
	w.annotate("web", "look", "again")
	w.until("the old one waits for one that was never applied", func() (bool, string) {
		ok, message := waits()
		return ok && strings.Contains(message, "nobody can tell") && !strings.Contains(message, gitopsv1alpha1.AllowDeleteTrailer), message
	})
	if diff := cmp.Diff(want, w.uids("a", "b")); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
	w.annotate("web", inventory.AllowPruneAnnotation, "true")
	w.until("the old one is gone", func() (bool, string) { return len(w.uids("a", "b")) == 0, "" })
}

// An object that moves to a Kustomization which is new in the same commit waits for it, whoever creates that.
func TestAManifestMovesToANewKustomization(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"app/children.yaml": child("inner", "inner"), "inner/config.yaml": named("a", "b", "c")})
	w.kustomization("web", waiting)
	w.ready("web", first)
	w.ready("inner", first)
	t.Cleanup(func() { w.remove("inner"); w.remove("fresh"); w.remove("later") })
	want := w.uids("a", "b", "c")
	second := w.commit(map[string]string{
		"app/children.yaml": child("inner", "inner") + "---\n" + child("fresh", "fresh"),
		"inner/config.yaml": named("a"), "fresh/children.yaml": child("later", "later"), "fresh/config.yaml": named("b"), "later/config.yaml": named("c"),
	})
	for _, name := range []string{"inner", "fresh", "later", "web"} {
		w.ready(name, second)
	}
	if diff := cmp.Diff(want, w.uids("a", "b", "c")); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
	w.holds("inner", "a")
	w.holds("later", "c")
}

// With a health check, what left is deleted once what replaces it is healthy, so that one of them always runs. What
// people have allowed by name is deleted before.
func TestWhatLeftStaysUntilTheOthersAreHealthy(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{"app/config.yaml": named("a", "b", "c", "d")}
	first := w.commit(files)
	w.kustomization("web", waiting)
	w.ready("web", first)
	files["app/config.yaml"], files["app/job.yaml"] = named("a", "b"), "apiVersion: v1\nkind: Pod\nmetadata: {name: job, namespace: NAMESPACE}\nspec: {containers: [{name: x, image: x}]}\n"
	second := w.commit(files)
	w.annotate("web", inventory.AllowPruneAnnotation, "configmap/"+w.namespace+"/d")
	message := w.awaitReason("web", second, meta.ProgressingReason)
	w.until("d is gone", func() (bool, string) { return w.configMap("d") == nil, "" })
	w.until("it says what stays", func() (bool, string) {
		message = w.awaitReason("web", second, meta.ProgressingReason)
		return strings.HasSuffix(message, "; what left it stays until then: ConfigMap/"+w.namespace+"/c"), message
	})
	if w.configMap("c") == nil {
		t.Error("what left is gone before what replaces it is healthy")
	}
	pod := w.object("v1", "Pod", w.namespace, "job")
	if err := unstructured.SetNestedMap(pod.Object, map[string]any{"phase": "Succeeded", "conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "PodCompleted"}}}, "status"); err != nil {
		t.Fatal(err)
	}
	if err := w.Hub.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	w.ready("web", second)
	if w.configMap("c") != nil {
		t.Error("what left is there")
	}
	want := []string{"NAMESPACE_a__ConfigMap", "NAMESPACE_b__ConfigMap", "NAMESPACE_job__Pod"}
	if diff := cmp.Diff(want, inventoryOf(w.get("web"))); diff != "" {
		t.Errorf("inventory (-want +got):\n%s", diff)
	}
}

// A Kustomization that moves to a parent which the same commit creates is no loss of the old parent.
func TestAChildMovesToANewParent(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"app/children.yaml": child("inner", "inner"), "inner/child.yaml": child("leaf", "leaf"), "leaf/config.yaml": configMaps(7)})
	w.kustomization("web")
	for _, name := range []string{"web", "inner", "leaf"} {
		w.ready(name, first)
	}
	t.Cleanup(func() { w.remove("inner"); w.remove("fresh"); w.remove("leaf") })
	leaf := w.get("leaf").UID
	second := w.commit(map[string]string{
		"app/children.yaml": child("inner", "inner") + "---\n" + child("fresh", "fresh"), "inner/config.yaml": named("a"),
		"fresh/child.yaml": child("leaf", "leaf"), "leaf/config.yaml": configMaps(7),
	})
	for _, name := range []string{"inner", "fresh", "leaf", "web"} {
		w.ready(name, second)
	}
	if w.get("leaf").UID != leaf {
		t.Error("the child was deleted and made anew")
	}
}

// Policies and overrides that left a revision are deleted before the run waits for health: objects that fail because
// of them would never be healthy.
func TestRulesThatLeftGoBeforeHealth(t *testing.T) {
	w := newWorld(t)
	override := "apiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {name: broken, namespace: NAMESPACE}\nspec: {overrideRules: []}\n"
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: job, namespace: NAMESPACE}\nspec: {containers: [{name: x, image: x}]}\n"
	files := map[string]string{"app/config.yaml": named("a", "b"), "app/override.yaml": override}
	first := w.commit(files)
	w.kustomization("web", waiting)
	w.ready("web", first)
	files["app/job.yaml"] = pod
	w.awaitReason("web", w.commit(files), meta.ProgressingReason)
	files["app/override.yaml"] = "# put right\n"
	w.awaitReason("web", w.commit(files), meta.ProgressingReason)
	w.until("the override is gone", func() (bool, string) {
		return w.object("policy.karmada.io/v1alpha1", "OverridePolicy", w.namespace, "broken") == nil, ""
	})
}

// A renamed child hands its objects over although its parent waits for the health of the new one, which needs
// them.
func TestAChildThatIsRenamedByAParentThatWaits(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"app/config.yaml": named("own"), "app/child.yaml": child("inner", "inner"), "inner/config.yaml": configMaps(3)})
	w.kustomization("web", waiting)
	w.ready("web", first)
	t.Cleanup(func() { w.remove("inner"); w.remove("shop") })
	want := w.uids("config-00", "config-01", "config-02")
	second := w.commit(map[string]string{"app/config.yaml": named("own"), "app/child.yaml": child("shop", "shop"), "shop/config.yaml": configMaps(3)})
	w.ready("web", second)
	w.ready("shop", second)
	if diff := cmp.Diff(want, w.uids("config-00", "config-01", "config-02")); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
}
