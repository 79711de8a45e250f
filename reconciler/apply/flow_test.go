package apply_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/acl"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/dependencies"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

func TestRevisionsAreAppliedUpdatedAndPruned(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"app/web.yaml": fmt.Sprintf(deployment, 1, "web"), "app/config.yaml": configMaps(1), "other/x.yaml": configMaps(9)})
	w.kustomization("web")
	ks := w.ready("web", first)
	if diff := cmp.Diff([]string{"NAMESPACE_config-00__ConfigMap", "NAMESPACE_web_apps_Deployment"}, inventoryOf(ks)); diff != "" {
		t.Errorf("inventory (-want +got):\n%s", diff)
	}
	web := w.object("apps/v1", "Deployment", w.namespace, "web")
	want := map[string]string{"kustomize.toolkit.fluxcd.io/name": "web", "kustomize.toolkit.fluxcd.io/namespace": w.namespace}
	if diff := cmp.Diff(want, web.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}

	second := w.commit(map[string]string{"app/web.yaml": fmt.Sprintf(deployment, 3, "web"), "app/config.yaml": configMaps(1), "app/service.yaml": service})
	ks = w.ready("web", second)
	web = w.object("apps/v1", "Deployment", w.namespace, "web")
	if replicas, _, _ := unstructured.NestedInt64(web.Object, "spec", "replicas"); replicas != 3 {
		t.Errorf("replicas = %d, want 3", replicas)
	}
	if len(inventoryOf(ks)) != 3 {
		t.Errorf("inventory = %v, want three objects", inventoryOf(ks))
	}

	third := w.commit(map[string]string{"app/web.yaml": fmt.Sprintf(deployment, 3, "web"), "app/service.yaml": service})
	ks = w.ready("web", third)
	if w.configMap("config-00") != nil {
		t.Error("the ConfigMap that left the revision is still there")
	}
	if diff := cmp.Diff([]string{"NAMESPACE_web__Service", "NAMESPACE_web_apps_Deployment"}, inventoryOf(ks)); diff != "" {
		t.Errorf("inventory (-want +got):\n%s", diff)
	}
	if got := len(ks.Status.History); got != 3 {
		t.Errorf("history has %d snapshots, want 3", got)
	}
	w.reported("web", "ReconciliationSucceeded", "ReconciliationSucceeded", "ReconciliationSucceeded")
}

func TestNothingIsWrittenWhileNothingChanges(t *testing.T) {
	w := newQuietWorld(t)
	revision := w.commit(map[string]string{"app/web.yaml": fmt.Sprintf(deployment, 1, "web"), "app/service.yaml": service, "app/config.yaml": configMaps(20)})
	w.kustomization("web", func(spec *kustomizev1.KustomizationSpec) {
		spec.Interval = metav1.Duration{Duration: 100 * time.Millisecond}
		spec.Wait = false
	})
	w.ready("web", revision)
	before, runs := w.QuietRevision(t), w.builds.runs()
	w.until("five more runs", func() (bool, string) { return w.builds.runs() >= runs+5, fmt.Sprint(w.builds.runs()) })
	if after := w.QuietRevision(t); after != before {
		t.Errorf("%d writes in five unchanged runs, want none", after-before)
	}

	w.stop()
	w.change("web", func(spec *kustomizev1.KustomizationSpec) {
		spec.Interval = metav1.Duration{Duration: 365 * 24 * time.Hour}
	})
	w.start()
	w.until("the new interval taken up", func() (bool, string) {
		ks := w.get("web")
		return ks.Status.ObservedGeneration == ks.Generation, ""
	})
	w.stop()
	before, runs = w.QuietRevision(t), w.builds.runs()
	w.start()
	later := w.commit(map[string]string{"app/web.yaml": fmt.Sprintf(deployment, 2, "web"), "app/service.yaml": service, "app/config.yaml": configMaps(20)})
	w.ready("web", later)
	if after := w.QuietRevision(t); after-before != 3 {
		t.Errorf("%d writes for a restart and a commit that changes one object, want 3: the artifact, the object, the status", after-before)
	}
	if got := w.builds.runs() - runs; got != 1 {
		t.Errorf("%d builds after a restart and a commit, want 1", got)
	}
}

// A commit that does not change what a Kustomization reads costs one write of its status: no build, no
// list, no dry run.
func TestACommitThatChangesNothingHere(t *testing.T) {
	w := newQuietWorld(t)
	files := map[string]string{"app/web.yaml": fmt.Sprintf(deployment, 1, "web"), "app/config.yaml": configMaps(3), "other/config.yaml": named("z")}
	first := w.commit(files)
	w.kustomization("web", func(spec *kustomizev1.KustomizationSpec) { spec.Wait = false })
	w.ready("web", first)
	before, runs := w.QuietRevision(t), w.builds.runs()
	for _, change := range []string{named("z", "y"), named("z", "y", "x")} {
		files["other/config.yaml"] = change
		w.ready("web", w.commit(files))
		if writes := w.QuietRevision(t) - before; writes != 2 || w.builds.runs() != runs { // one of them is the source's
			t.Errorf("%d writes, want 2: %v; %d builds, want none", writes, w.Written(t, before), w.builds.runs()-runs)
		}
		before = w.QuietRevision(t)
	}
	files["app/config.yaml"] = configMaps(4)
	third := w.commit(files)
	w.ready("web", third)
	if w.builds.runs() != runs+1 || w.configMap("config-03") == nil {
		t.Errorf("%d builds, want 1; config-03 is %v", w.builds.runs()-runs, w.configMap("config-03"))
	}
}

// TestWhoReadsAChangeComesFirst: of many Kustomizations that follow one source, those that a commit changes are
// applied before the others report that it changes nothing for them.
func TestWhoReadsAChangeComesFirst(t *testing.T) {
	const all, changed = 60, 6
	w := newQuietWorld(t)
	files := map[string]string{}
	for n := range all {
		folder := fmt.Sprintf("app-%02d", n)
		files[folder+"/config.yaml"] = named(folder)
	}
	first := w.commit(files)
	for n := range all {
		folder := fmt.Sprintf("app-%02d", n)
		w.kustomization(folder, func(spec *kustomizev1.KustomizationSpec) {
			spec.Path, spec.Wait, spec.RetryInterval = folder, false, &metav1.Duration{Duration: time.Minute}
			if n == 10 { // a changed one depends on an unchanged one
				spec.DependsOn = []kustomizev1.DependencyReference{{Name: "app-59"}}
			}
		})
	}
	stand := func(revision string) map[string]int {
		at := map[string]int{}
		w.until("all stand", func() (bool, string) {
			var list kustomizev1.KustomizationList
			if err := w.Hub.List(t.Context(), &list, client.InNamespace(w.namespace)); err != nil {
				t.Fatal(err)
			}
			for _, ks := range list.Items {
				if ks.Status.LastAppliedRevision == revision {
					at[ks.Name], _ = strconv.Atoi(ks.ResourceVersion)
				}
			}
			return len(at) == all, fmt.Sprint(len(at))
		})
		return at
	}
	stand(first)
	for n := range changed {
		folder := fmt.Sprintf("app-%02d", n*all/changed)
		files[folder+"/config.yaml"] = named(folder, folder+"-too")
	}
	at := stand(w.commit(files))
	written := slices.Sorted(maps.Values(at))
	for n := range changed {
		folder := fmt.Sprintf("app-%02d", n*all/changed)
		if before, _ := slices.BinarySearch(written, at[folder]); before > all/2 {
			t.Errorf("%d of %d stand before %s, of which the commit changes something", before, all, folder)
		}
	}
}

func TestTheBrakeHoldsUntilItIsLifted(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"app/config.yaml": configMaps(20)})
	w.kustomization("web")
	w.ready("web", first)

	second := w.commit(map[string]string{"app/config.yaml": configMaps(10) + strings.ReplaceAll(configMaps(1), "config-00", "new")})
	message := w.awaitReason("web", second, inventory.ReasonPruneBlocked)
	want := "revision " + second + " would remove 10 of 20 objects (ConfigMap/NS/config-10, ConfigMap/NS/config-11, ConfigMap/NS/config-12 and 7 more): nothing was applied;"
	if !strings.HasPrefix(strings.ReplaceAll(message, w.namespace, "NS"), want) {
		t.Errorf("message = %q, want it to begin with %q", message, want)
	}
	ks := w.get("web")
	if !apimeta.IsStatusConditionTrue(ks.Status.Conditions, meta.StalledCondition) || ks.Status.LastAppliedRevision != first || len(inventoryOf(ks)) != 20 {
		t.Errorf("a blocked revision left its mark: %+v", ks.Status)
	}
	if w.configMap("new") != nil || w.configMap("config-19") == nil {
		t.Error("a blocked revision was partly applied")
	}

	w.annotate("web", inventory.AllowPruneAnnotation, second)
	ks = w.ready("web", second)
	if w.configMap("new") == nil || w.configMap("config-19") != nil || len(inventoryOf(ks)) != 11 {
		t.Errorf("an allowed revision was not applied: %v", inventoryOf(ks))
	}
	third := w.commit(map[string]string{"app/config.yaml": configMaps(1)})
	w.awaitReason("web", third, inventory.ReasonPruneBlocked)
}

func TestBadRevisionsLeaveTheLastGoodOne(t *testing.T) {
	good := map[string]string{"app/config.yaml": configMaps(2)}
	fine := strings.ReplaceAll(configMaps(1), "config-00", "never")
	cases := map[string]struct {
		files  map[string]string
		reason string
		says   string
	}{
		"a kind that the hub does not know": {
			files:  map[string]string{"app/x.yaml": "apiVersion: example.com/v1\nkind: Gizmo\nmetadata: {name: g, namespace: NAMESPACE}\n"},
			reason: applier.ReasonUnknownKind, says: "Gizmo/NAMESPACE/g: the control plane does not know the kind Gizmo of example.com/v1",
		},
		"a kind of Flux's that is for members": {
			files:  map[string]string{"app/x.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: g, namespace: NAMESPACE}\n"},
			reason: applier.ReasonUnknownKind, says: "of helm.toolkit.fluxcd.io/v2: it is one of Flux's that the control plane does not act on: commit its CustomResourceDefinition and a policy",
		},
		"a namespace that does not exist": {
			files:  map[string]string{"app/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: nowhere}\n"},
			reason: applier.ReasonNamespaceNotFound, says: "ConfigMap/nowhere/c: the namespace nowhere does not exist",
		},
		"an object without a namespace": {
			files:  map[string]string{"app/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"},
			reason: applier.ReasonNamespaceNotSet, says: "ConfigMap/c: it names no namespace: set metadata.namespace",
		},
		"a field of the wrong type": {
			files:  map[string]string{"app/x.yaml": strings.ReplaceAll(service, "port: 80", "port: eighty")},
			reason: applier.ReasonInvalidObject, says: "Service/NAMESPACE/web: ",
		},
		"a field that does not exist": {
			files:  map[string]string{"app/x.yaml": strings.ReplaceAll(service, "spec: {", "spec: {colour: red, ")},
			reason: applier.ReasonInvalidObject, says: "colour",
		},
		"a value that is not allowed": {
			files:  map[string]string{"app/x.yaml": strings.ReplaceAll(service, "port: 80", "port: 99999")},
			reason: applier.ReasonInvalidObject, says: "spec.ports[0].port",
		},
		"an object that is too large": {
			files:  map[string]string{"app/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big, namespace: NAMESPACE}\ndata: {x: \"" + noise(1_500_000) + "\"}\n"},
			reason: applier.ReasonObjectTooLarge, says: "ConfigMap/NAMESPACE/big: it has 15",
		},
		"the same object twice": {
			files:  map[string]string{"app/x.yaml": configMaps(1)},
			reason: builder.ReasonDuplicateObject, says: "config-00",
		},
		"a manifest that does not parse": {
			files:  map[string]string{"app/x.yaml": "apiVersion: v1\nkind: [\n"},
			reason: meta.BuildFailedReason, says: "app/x.yaml",
		},
		"a broken kustomization": {
			files:  map[string]string{"app/kustomization.yaml": "resources: [config.yaml, nothing.yaml]\n"},
			reason: meta.BuildFailedReason, says: "nothing.yaml",
		},
		"an object in an execution namespace": {
			files:  map[string]string{"app/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: karmada-es-east}\n"},
			reason: applier.ReasonForbidden, says: "ConfigMap/karmada-es-east/c: the namespace karmada-es-east carries work to the cluster east",
		},
	}
	w := newWorld(t)
	first := w.commit(good)
	w.kustomization("web")
	w.ready("web", first)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"app/config.yaml": configMaps(2), "app/fine.yaml": fine}
			for path, text := range tc.files {
				files[path] = text
			}
			revision := w.commit(files)
			message := w.awaitReason("web", revision, tc.reason)
			if says := strings.ReplaceAll(tc.says, "NAMESPACE", w.namespace); !strings.Contains(message, says) {
				t.Errorf("message = %q, want it to say %q", message, says)
			}
			if w.configMap("never") != nil || w.configMap("config-01") == nil {
				t.Error("the revision was partly applied")
			}
			if got := w.get("web").Status.LastAppliedRevision; got != first {
				t.Errorf("last applied = %s, want %s", got, first)
			}
		})
	}
	for name, tc := range map[string]struct {
		files  map[string]string
		reason string
	}{
		"an empty folder":          {files: map[string]string{"app/readme.md": "nothing"}, reason: builder.ReasonEmptyBuild},
		"a path that is not there": {files: map[string]string{"elsewhere/config.yaml": configMaps(1)}, reason: builder.ReasonPathNotFound},
		"a file of comments":       {files: map[string]string{"app/x.yaml": "# nothing\n---\n"}, reason: builder.ReasonEmptyBuild},
	} {
		t.Run(name, func(t *testing.T) {
			w.awaitReason("web", w.commit(tc.files), tc.reason)
			if w.configMap("config-00") == nil {
				t.Error("objects were deleted")
			}
		})
	}
	w.ready("web", w.commit(map[string]string{"app/config.yaml": configMaps(3)}))
}

func TestDefinitionsComeFirst(t *testing.T) {
	w := newWorld(t)
	group := strings.TrimPrefix(w.namespace, "t-") + ".example.com"
	crd := `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.GROUP}
spec:
  group: GROUP
  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer}}}}}]
`
	own := w.namespace + "-own"
	files := map[string]string{
		"app/a-gadget.yaml":  "apiVersion: GROUP/v1\nkind: Gadget\nmetadata: {name: one, namespace: OWN}\nsize: 3\n",
		"app/b-config.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: OWN}\n",
		"app/crd.yaml":       crd,
		"app/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: OWN}\n",
		"app/policy.yaml":    "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterOverridePolicy\nmetadata: {name: OWN}\nspec: {overrideRules: []}\n",
	}
	for path, text := range files {
		files[path] = strings.NewReplacer("GROUP", group, "OWN", own).Replace(text)
	}
	revision := w.commit(files)
	w.kustomization("web", func(spec *kustomizev1.KustomizationSpec) { spec.DeletionPolicy = kustomizev1.DeletionPolicyDelete })
	ks := w.ready("web", revision)
	if w.object(group+"/v1", "Gadget", own, "one") == nil || w.object("v1", "ConfigMap", own, "c") == nil {
		t.Error("objects that need a definition of the same revision were not applied")
	}
	if got := len(inventoryOf(ks)); got != 5 {
		t.Errorf("inventory = %v, want five objects", inventoryOf(ks))
	}
	if err := w.Hub.Delete(t.Context(), ks); err != nil {
		t.Fatal(err)
	}
	w.until("the definition deleted with its Kustomization", func() (bool, string) {
		crd := w.object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "gadgets."+group)
		return crd == nil || crd.GetDeletionTimestamp() != nil, "still there"
	})
	w.until("the override, which is for all of the control plane that other tests share, is gone, too", func() (bool, string) {
		return w.object("policy.karmada.io/v1alpha1", "ClusterOverridePolicy", "", own) == nil, "still there"
	})
}

func TestDependencies(t *testing.T) {
	w := newWorld(t)
	on := func(name string) func(*kustomizev1.KustomizationSpec) {
		return func(spec *kustomizev1.KustomizationSpec) {
			spec.DependsOn = []kustomizev1.DependencyReference{{Name: name}}
		}
	}
	path := func(path string) func(*kustomizev1.KustomizationSpec) {
		return func(spec *kustomizev1.KustomizationSpec) { spec.Path = path }
	}
	files := map[string]string{"base/x.yaml": strings.ReplaceAll(configMaps(1), "config-00", "base"), "app/x.yaml": configMaps(1)}
	revision := w.commit(files)
	w.kustomization("app", on("base"))
	if message := w.awaitReason("app", revision, meta.DependencyNotReadyReason); message != "dependency "+w.namespace+"/base does not exist" {
		t.Errorf("message = %q", message)
	}
	if w.configMap("config-00") != nil {
		t.Error("applied before its dependency")
	}
	w.kustomization("base", path("base"))
	w.ready("app", revision)
	if err := w.Hub.Delete(t.Context(), w.get("base")); err != nil {
		t.Fatal(err)
	}
	if message := w.awaitReason("app", revision, meta.DependencyNotReadyReason); message != "dependency "+w.namespace+"/base does not exist" {
		t.Errorf("message once it is gone = %q", message)
	}

	w.kustomization("base", path("base"))
	w.ready("base", revision)
	w.kustomization("typo", on("bse"), path("bsae"))
	if message := w.awaitReason("typo", revision, meta.DependencyNotReadyReason); message != "dependency "+w.namespace+"/bse does not exist (did you mean base?)" {
		t.Errorf("message of a typing error = %q", message)
	}
	w.change("typo", func(spec *kustomizev1.KustomizationSpec) { spec.DependsOn = nil })
	if message := w.awaitReason("typo", revision, builder.ReasonPathNotFound); !strings.HasSuffix(message, "(did you mean ./base?)") {
		t.Errorf("message of a typing error in the path = %q", message)
	}

	w.kustomization("one", on("two"))
	w.kustomization("two", on("one"), path("base"))
	message := w.awaitReason("two", revision, dependencies.ReasonCycle)
	if !strings.Contains(message, w.namespace+"/one -> "+w.namespace+"/two") && !strings.Contains(message, w.namespace+"/two -> "+w.namespace+"/one") {
		t.Errorf("message = %q, want it to show the cycle", message)
	}
}

// TestACommitThatChangesNothingHereIsNotTried: a Kustomization that waits for its dependency does not count as having
// tried a commit that changes nothing for it, so that no status of the commit is posted.
func TestACommitThatChangesNothingHereIsNotTried(t *testing.T) {
	w := newWorld(t)
	base := strings.ReplaceAll(configMaps(1), "config-00", "base")
	first := w.commit(map[string]string{"base/x.yaml": base, "app/x.yaml": configMaps(1)})
	w.kustomization("base", func(spec *kustomizev1.KustomizationSpec) { spec.Path = "base" })
	w.kustomization("app", func(spec *kustomizev1.KustomizationSpec) {
		spec.DependsOn = []kustomizev1.DependencyReference{{Name: "base"}}
	})
	w.ready("app", first)
	for i, broken := range []string{"kind: [", "kind: {"} { // twice: the second is compared with the applied one, too
		revision := w.commit(map[string]string{"base/x.yaml": broken, "app/x.yaml": configMaps(1)})
		w.awaitReason("base", revision, meta.BuildFailedReason)
		w.awaitReason("app", first, meta.DependencyNotReadyReason)
		if got := w.get("app").Status.LastAppliedRevision; got != first {
			t.Errorf("commit %d: %s is applied", i, got)
		}
	}
	changed := w.commit(map[string]string{"base/x.yaml": "kind: (", "app/x.yaml": configMaps(2)})
	w.awaitReason("app", changed, meta.DependencyNotReadyReason)
	for i, broken := range []string{"kind: [", "kind: {"} { // what waits with a change of an earlier commit has not tried this one
		revision := w.commit(map[string]string{"base/x.yaml": broken, "app/x.yaml": configMaps(2)})
		w.awaitReason("base", revision, meta.BuildFailedReason)
		asked := fmt.Sprint("after ", changed, " ", i)
		w.annotate("app", meta.ReconcileRequestAnnotation, asked)
		w.until("the commit looked at", func() (bool, string) {
			handled := w.get("app").Status.LastHandledReconcileAt
			return handled == asked, handled
		})
		if got := w.get("app").Status.LastAttemptedRevision; got != changed {
			t.Errorf("commit %d after the one that changes it: %s is tried, want %s", i, got, changed)
		}
	}
	mended := w.commit(map[string]string{"base/x.yaml": base, "app/x.yaml": configMaps(1)})
	w.ready("app", mended)
}

func TestSuspendAndRequests(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"app/x.yaml": configMaps(1)})
	w.kustomization("web")
	w.kustomization("witness", func(spec *kustomizev1.KustomizationSpec) { spec.Path, spec.Prune = "witness", false })
	w.awaitReason("witness", first, builder.ReasonPathNotFound)
	w.ready("web", first)
	w.change("web", func(spec *kustomizev1.KustomizationSpec) { spec.Suspend = true })
	w.seen(w.get("web"))
	second := w.commit(map[string]string{"app/x.yaml": configMaps(2), "witness/x.yaml": strings.ReplaceAll(configMaps(1), "config-00", "witness")})
	w.ready("witness", second)
	if w.configMap("config-01") != nil {
		t.Error("a suspended Kustomization was applied")
	}
	w.change("web", func(spec *kustomizev1.KustomizationSpec) { spec.Suspend = false })
	w.ready("web", second)

	w.edit(w.configMap("config-01"), "changed by hand", "data", "number")
	w.annotate("web", meta.ReconcileRequestAnnotation, "now")
	w.until("the request handled", func() (bool, string) {
		return w.get("web").Status.LastHandledReconcileAt == "now", w.get("web").Status.LastHandledReconcileAt
	})
	if got, _, _ := unstructured.NestedString(w.configMap("config-01").Object, "data", "number"); got != "1" {
		t.Errorf("drift was not corrected: %q", got)
	}
	w.reported("web", "ReconciliationSucceeded", "ReconciliationSucceeded", "DriftCorrected")
}

// TestAPortThatWasChangedByHand: a port with another number is another one to the server, which refuses both, as they have one name.
func TestAPortThatWasChangedByHand(t *testing.T) {
	w := newWorld(t)
	w.kustomization("web")
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: NAMESPACE}\nspec: {ports: [{name: http, port: %d}]}\n"
	w.ready("web", w.commit(map[string]string{"app/web.yaml": fmt.Sprintf(service, 80)}))
	ports := func() string {
		list, _, _ := unstructured.NestedSlice(w.object("v1", "Service", w.namespace, "web").Object, "spec", "ports")
		var out []string
		for _, port := range list {
			out = append(out, fmt.Sprint(port.(map[string]any)["port"]))
		}
		return strings.Join(out, " ")
	}
	byHand := func(port int64) {
		obj := w.object("v1", "Service", w.namespace, "web")
		before := obj.DeepCopy()
		if err := unstructured.SetNestedSlice(obj.Object, []any{map[string]any{"name": "http", "port": port, "protocol": "TCP", "targetPort": port}}, "spec", "ports"); err != nil {
			t.Fatal(err)
		}
		if err := w.Hub.Patch(t.Context(), obj, client.MergeFrom(before), client.FieldOwner("kubectl-edit")); err != nil {
			t.Fatal(err)
		}
	}
	byHand(81)
	w.ready("web", w.commit(map[string]string{"app/web.yaml": fmt.Sprintf(service, 82)}))
	if got := ports(); got != "82" {
		t.Errorf("the ports are %s, want 82", got)
	}
	byHand(83)
	w.annotate("web", meta.ReconcileRequestAnnotation, "now")
	w.until("it is put back", func() (bool, string) { return ports() == "82", ports() })
}

func TestImmutableFields(t *testing.T) {
	w := newWorld(t)
	w.kustomization("web")
	w.ready("web", w.commit(map[string]string{"app/web.yaml": fmt.Sprintf(deployment, 1, "web")}))
	uid := func() string { return string(w.object("apps/v1", "Deployment", w.namespace, "web").GetUID()) }
	before := uid()

	changed := map[string]string{"app/web.yaml": fmt.Sprintf(deployment, 1, "shop")}
	revision := w.commit(changed)
	message := w.awaitReason("web", revision, applier.ReasonImmutableField)
	if !strings.Contains(message, "spec.selector") || !strings.Contains(message, "spec.force") {
		t.Errorf("message = %q, want it to name the field and what to do", message)
	}
	w.change("web", func(spec *kustomizev1.KustomizationSpec) { spec.Force = true })
	w.ready("web", revision)
	if uid() == before {
		t.Error("the Deployment was not recreated")
	}

	before = uid()
	invalid := strings.ReplaceAll(fmt.Sprintf(deployment, 1, "web"), "name: web, image", "name: \"not a name\", image")
	message = w.awaitReason("web", w.commit(map[string]string{"app/web.yaml": invalid}), applier.ReasonInvalidObject)
	if !strings.Contains(message, "containers[0].name") || uid() != before {
		t.Errorf("an object was deleted for one that is not valid: %s", message)
	}
}

// TestWhatIsNeverRecreated: force deletes no data.
func TestWhatIsNeverRecreated(t *testing.T) {
	w := newWorld(t)
	w.kustomization("web", func(spec *kustomizev1.KustomizationSpec) { spec.Force = true })
	claim := func(class string) map[string]string {
		return map[string]string{"app/data.yaml": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: " + w.namespace + ", annotations: {kustomize.toolkit.fluxcd.io/force: enabled}}\n" +
			"spec: {accessModes: [ReadWriteOnce], storageClassName: " + class + ", resources: {requests: {storage: 1Gi}}}\n"}
	}
	w.ready("web", w.commit(claim("slow")))
	before := w.object("v1", "PersistentVolumeClaim", w.namespace, "data").GetUID()
	message := w.awaitReason("web", w.commit(claim("fast")), applier.ReasonInvalidObject)
	if strings.Contains(message, "spec.force") || w.object("v1", "PersistentVolumeClaim", w.namespace, "data").GetUID() != before {
		t.Errorf("it was recreated, or is said to be by force: %s", message)
	}
}

func TestRefusedSpecs(t *testing.T) {
	w := newWorld(t)
	revision := w.commit(map[string]string{"app/x.yaml": configMaps(1)})
	cases := map[string]struct {
		change func(*kustomizev1.KustomizationSpec)
		reason string
		says   string
	}{
		"kubeconfig": {
			change: func(spec *kustomizev1.KustomizationSpec) {
				spec.KubeConfig = &meta.KubeConfigReference{ConfigMapRef: &meta.LocalObjectReference{Name: "x"}}
			},
			reason: kustomizations.ReasonNotSupported, says: "spec.kubeConfig.configMapRef is not supported yet: it is for identities of clouds: name a Secret",
		},
		"decryption": {
			change: func(spec *kustomizev1.KustomizationSpec) {
				spec.Decryption = &kustomizev1.Decryption{Provider: "sops", ServiceAccountName: "default"}
			},
			reason: kustomizations.ReasonNotSupported, says: "spec.decryption.serviceAccountName is not supported yet: it is for keys of clouds: name a Secret with age or OpenPGP keys in spec.decryption.secretRef",
		},
		"elsewhere": {
			change: func(spec *kustomizev1.KustomizationSpec) { spec.SourceRef.Namespace = "default" },
			reason: acl.AccessDeniedReason, says: "default/fleet is in another namespace",
		},
		"nosource": {
			change: func(spec *kustomizev1.KustomizationSpec) { spec.SourceRef.Name = "nothing" },
			reason: meta.ArtifactFailedReason, says: "/nothing does not exist: create it",
		},
		"mistyped": {
			change: func(spec *kustomizev1.KustomizationSpec) { spec.SourceRef.Name = "flet" },
			reason: meta.ArtifactFailedReason, says: "/flet does not exist (did you mean fleet?): create it",
		},
		"novariables": {
			change: func(spec *kustomizev1.KustomizationSpec) {
				spec.PostBuild = &kustomizev1.PostBuild{SubstituteFrom: []kustomizev1.SubstituteReference{{Kind: "ConfigMap", Name: "vars"}}}
			},
			reason: meta.BuildFailedReason, says: "the ConfigMap vars does not exist",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w.kustomization(name, tc.change)
			attempted := revision
			if name == "elsewhere" || name == "nosource" || name == "mistyped" {
				attempted = ""
			}
			if message := w.awaitReason(name, attempted, tc.reason); !strings.Contains(message, tc.says) {
				t.Errorf("message = %q, want it to say %q", message, tc.says)
			}
		})
	}
}

func TestDeletion(t *testing.T) {
	w := newWorld(t)
	cases := map[string]struct {
		change func(*kustomizev1.KustomizationSpec)
		stays  bool
	}{
		"mirrors pruning":    {change: func(*kustomizev1.KustomizationSpec) {}},
		"mirrors no pruning": {change: func(spec *kustomizev1.KustomizationSpec) { spec.Prune = false }, stays: true},
		"orphans":            {change: func(spec *kustomizev1.KustomizationSpec) { spec.DeletionPolicy = kustomizev1.DeletionPolicyOrphan }, stays: true},
		"deletes": {change: func(spec *kustomizev1.KustomizationSpec) {
			spec.Prune, spec.DeletionPolicy = false, kustomizev1.DeletionPolicyDelete
		}},
		"waits for the end": {change: func(spec *kustomizev1.KustomizationSpec) {
			spec.DeletionPolicy = kustomizev1.DeletionPolicyWaitForTermination
		}},
		"suspended stays put": {change: func(spec *kustomizev1.KustomizationSpec) {}, stays: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			id := strings.ReplaceAll(name, " ", "-")
			revision := w.commit(map[string]string{"app/x.yaml": strings.ReplaceAll(configMaps(1), "config-00", id)})
			w.kustomization(id, tc.change)
			ks := w.ready(id, revision)
			if name == "suspended stays put" {
				w.change(id, func(spec *kustomizev1.KustomizationSpec) { spec.Suspend = true })
			}
			if err := w.Hub.Delete(t.Context(), ks); err != nil {
				t.Fatal(err)
			}
			w.until("gone", func() (bool, string) {
				err := w.Hub.Get(t.Context(), client.ObjectKeyFromObject(ks), ks)
				return err != nil && client.IgnoreNotFound(err) == nil, fmt.Sprint(err)
			})
			if stays := w.configMap(id) != nil; stays != tc.stays {
				t.Errorf("object stays = %v, want %v", stays, tc.stays)
			}
		})
	}
}

// listening keeps the listener to templates, so that the test can call it.
type listening struct{ templatestore.Listener }

func (l *listening) Listen(one templatestore.Listener) { l.Listener = one }

func (*listening) Get(context.Context, templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error) {
	return nil, templatestore.Unknown, nil
}

// What others delete is applied again as soon as a watch reports it, without waiting for the interval, also during a
// health check and after a restart.
func TestWhatOthersDeleteComesBack(t *testing.T) {
	w := newWorld(t)
	templates := &listening{}
	w.templates = templates
	w.stop()
	w.start()
	policy := "apiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {name: all, namespace: NAMESPACE}\nspec: {overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}]}\n"
	revision := w.commit(map[string]string{"app/config.yaml": named("a"), "app/policy.yaml": policy})
	w.kustomization("web")
	w.ready("web", revision)
	back := func(obj *unstructured.Unstructured) {
		t.Helper()
		if err := w.Hub.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		if obj.GetKind() == "ConfigMap" {
			templates.Changed(templatestore.KeyOf(obj), obj, nil, false)
		}
		w.until(obj.GetName()+" is back", func() (bool, string) {
			now := w.object(obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName())
			return now != nil && now.GetUID() != obj.GetUID() && now.GetDeletionTimestamp() == nil, ""
		})
	}
	back(w.configMap("a"))
	w.ready("web", revision)
	w.stop()
	w.start()
	w.kustomization("witness", in("./nowhere")) // queued last: once it has run, the others have, too
	w.awaitReason("witness", revision, builder.ReasonPathNotFound)
	back(w.object("policy.karmada.io/v1alpha1", "OverridePolicy", w.namespace, "all"))
}

func TestStrictVariables(t *testing.T) {
	w := newWorld(t)
	w.building.StrictVariables = true
	w.stop()
	w.start()
	substitutes := func(spec *kustomizev1.KustomizationSpec) {
		spec.PostBuild = &kustomizev1.PostBuild{Substitute: map[string]string{"known": "a"}}
	}
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"${known}\", namespace: NAMESPACE}\ndata: {with: \"${other:=default}\"}\n"
	first := w.commit(map[string]string{"app/x.yaml": manifest})
	w.kustomization("web", substitutes)
	w.ready("web", first)
	second := w.commit(map[string]string{"app/x.yaml": strings.ReplaceAll(manifest, ":=default", "")})
	if message := w.awaitReason("web", second, meta.BuildFailedReason); !strings.Contains(message, "other") {
		t.Errorf("message = %s", message)
	}
}

// TestStrictVariablesOfOne: the annotation of a Kustomization goes before what holds for all, and a change of it counts at once.
func TestStrictVariablesOfOne(t *testing.T) {
	w := newWorld(t)
	revision := w.commit(map[string]string{"app/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: NAMESPACE}\ndata: {with: \"${other}\"}\n"})
	w.kustomization("web", func(spec *kustomizev1.KustomizationSpec) {
		spec.PostBuild = &kustomizev1.PostBuild{Substitute: map[string]string{"known": "a"}}
	})
	w.ready("web", revision)
	w.annotate("web", builder.StrictVariablesAnnotation, "true")
	if message := w.awaitReason("web", revision, meta.BuildFailedReason); !strings.Contains(message, "other") {
		t.Errorf("message = %s", message)
	}
	w.annotate("web", builder.StrictVariablesAnnotation, "false")
	w.ready("web", revision)
	w.annotate("web", builder.StrictVariablesAnnotation, "yes")
	if message := w.awaitReason("web", revision, kustomizations.ReasonInvalidAnnotation); !strings.Contains(message, `kustomize.flotilla.io/strict-variables is "yes": make it "true" or "false"`) {
		t.Errorf("message = %s", message)
	}
}
