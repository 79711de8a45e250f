package apply_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
)

func waiting(spec *kustomizev1.KustomizationSpec) { spec.Wait = true }

// rollOut reports a Deployment as fully rolled out.
func (w *world) rollOut(name string) {
	w.t.Helper()
	web := w.object("apps/v1", "Deployment", w.namespace, name)
	replicas, _, _ := unstructured.NestedInt64(web.Object, "spec", "replicas")
	patch := fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":%[2]d,"updatedReplicas":%[2]d,"readyReplicas":%[2]d,"availableReplicas":%[2]d,
		"conditions":[{"type":"Available","status":"True","reason":"x","message":"x"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable","message":"x"}]}}`, web.GetGeneration(), replicas)
	if err := w.Hub.Status().Patch(w.t.Context(), web, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		w.t.Fatal(err)
	}
}

func TestWaitIsForHealthAndForNothingOlder(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"app/web.yaml": fmt.Sprintf(deployment, 1, "web")})
	w.kustomization("web", waiting)
	want := "Running health checks for revision " + first + " with a timeout of 9m30s"
	w.until(want, func() (bool, string) {
		message := w.awaitReason("web", first, meta.ProgressingReason)
		return message == want, message
	})
	if got := w.get("web").Status.LastAppliedRevision; got != "" {
		t.Errorf("last applied = %q before the revision is healthy", got)
	}

	second := w.commit(map[string]string{"app/web.yaml": fmt.Sprintf(deployment, 2, "web")})
	w.awaitReason("web", second, meta.ProgressingReason)
	w.rollOut("web")
	ks := w.ready("web", second)
	if !apimeta.IsStatusConditionTrue(ks.Status.Conditions, meta.HealthyCondition) {
		t.Errorf("conditions = %+v, want Healthy", ks.Status.Conditions)
	}
}

// TestAKustomizationThatAppliesItself: the root of a repository that holds its own manifest does not wait for itself,
// and what leaves it is deleted.
func TestAKustomizationThatAppliesItself(t *testing.T) {
	w := newWorld(t)
	self := strings.Replace(child("web", "app"), "prune: true", "prune: true, wait: true, timeout: 20s", 1)
	files := map[string]string{"app/self.yaml": self, "app/config.yaml": named("a", "b")}
	first := w.commit(files)
	w.kustomization("web", waiting)
	w.ready("web", first)
	files["app/self.yaml"] = strings.Replace(self, "timeout: 20s", "timeout: 30s", 1)
	files["app/config.yaml"] = named("b", "c")
	w.ready("web", w.commit(files))
	w.configMap("c")
	if gone := w.object("v1", "ConfigMap", w.namespace, "a"); gone != nil {
		t.Errorf("%s is still there", gone.GetName())
	}
}

func TestWaitIsForTheBindingOfWhatAPolicyCarries(t *testing.T) {
	w := newWorld(t)
	policy := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "all"},
		Spec:       policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}},
	}
	w.create(policy)
	w.seen(policy)
	revision := w.commit(map[string]string{"app/x.yaml": configMaps(1)})
	w.kustomization("web", waiting)
	w.awaitReason("web", revision, meta.ProgressingReason)

	binding := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: workv1alpha2.BindingName("ConfigMap", "config-00")},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.namespace, Name: "config-00"},
			Clusters: []workv1alpha2.TargetCluster{{Name: "east"}},
		},
	}
	w.create(binding)
	binding.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: false, AppliedMessage: "quota exceeded"}}
	if err := w.Hub.Status().Update(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	// No Work shows that the latest version was sent, so that the health is not known.
	if got := w.get("web"); apimeta.IsStatusConditionTrue(got.Status.Conditions, meta.ReadyCondition) {
		t.Errorf("ready although no cluster has it: %+v", got.Status.Conditions)
	}
	if err := w.Hub.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	if err := w.Hub.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	w.ready("web", revision)
}

func TestFailedHealthIsReportedAndComesBack(t *testing.T) {
	w := newWorld(t)
	widget := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: state, namespace: NAMESPACE}\ndata: {state: %s}\n"
	w.kustomization("web", waiting, func(spec *kustomizev1.KustomizationSpec) {
		spec.HealthCheckExprs = []kustomize.CustomHealthCheck{{
			APIVersion: "v1", Kind: "ConfigMap",
			HealthCheckExpressions: kustomize.HealthCheckExpressions{Current: "data.state == 'good'", Failed: "data.state == 'bad'"},
		}}
	})
	first := w.commit(map[string]string{"app/x.yaml": fmt.Sprintf(widget, "bad")})
	message := w.awaitReason("web", first, meta.HealthCheckFailedReason)
	if want := "health check failed: ConfigMap/" + w.namespace + "/state"; message != want {
		t.Errorf("message = %q, want %q", message, want)
	}
	w.reported("web", meta.HealthCheckFailedReason)
	w.edit(w.configMap("state"), "good", "data", "state")
	w.ready("web", first)
	w.ready("web", w.commit(map[string]string{"app/x.yaml": fmt.Sprintf(widget, "good")}))
}

func TestTenantsApplyAsThemselves(t *testing.T) {
	w := newWorld(t)
	as := func(spec *kustomizev1.KustomizationSpec) { spec.ServiceAccountName = "tenant" }
	revision := w.commit(map[string]string{"app/x.yaml": configMaps(2)})
	w.kustomization("web", as)
	message := w.awaitReason("web", revision, applier.ReasonForbidden)
	if !strings.Contains(message, `User "system:serviceaccount:`+w.namespace+`:tenant" cannot patch resource "configmaps"`) {
		t.Errorf("message = %q, want it to say who may not do what", message)
	}
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "tenant"}})
	w.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "tenant"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "patch", "get", "delete"}}},
	})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "tenant"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "tenant"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.namespace, Name: "tenant"}},
	})
	w.ready("web", revision)
	w.ready("web", w.commit(map[string]string{"app/x.yaml": configMaps(1)}))
	if w.configMap("config-01") != nil {
		t.Error("not pruned")
	}
	message = w.awaitReason("web", w.commit(map[string]string{"app/x.yaml": configMaps(1), "app/s.yaml": service}), applier.ReasonForbidden)
	if !strings.Contains(message, `"services"`) {
		t.Errorf("message = %q, want it to name services", message)
	}
}

func TestObjectsOfOthersAreTakenOver(t *testing.T) {
	w := newWorld(t)
	mine := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: "config-00",
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "team": "shop"},
		},
		Data: map[string]string{"number": "7", "extra": "by hand"},
	}
	if err := w.Hub.Create(t.Context(), mine, client.FieldOwner("kubectl-client-side-apply")); err != nil {
		t.Fatal(err)
	}
	revision := w.commit(map[string]string{"app/x.yaml": configMaps(1)})
	w.kustomization("web")
	w.ready("web", revision)
	got := w.configMap("config-00")
	if data, _, _ := unstructured.NestedStringMap(got.Object, "data"); len(data) != 1 || data["number"] != "0" {
		t.Errorf("data = %v, want what Git says and nothing else", data)
	}
	if _, traced := got.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; traced {
		t.Errorf("annotations = %v, want kubectl's gone", got.GetAnnotations())
	}
}

func TestObjectsMayOptOut(t *testing.T) {
	w := newWorld(t)
	marked := func(name, annotation string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: NAMESPACE, annotations: {kustomize.toolkit.fluxcd.io/" + annotation + "}}\ndata: {number: VALUE}\n"
	}
	text := configMaps(1) + marked("kept", "prune: disabled") + marked("once", "ssa: IfNotPresent") + marked("off", "reconcile: disabled")
	w.kustomization("web")
	w.ready("web", w.commit(map[string]string{"app/x.yaml": strings.ReplaceAll(text, "VALUE", "one")}))
	w.ready("web", w.commit(map[string]string{"app/x.yaml": strings.ReplaceAll(text, "VALUE", "two")}))
	value := func(name string) string {
		obj := w.configMap(name)
		if obj == nil {
			return "gone"
		}
		out, _, _ := unstructured.NestedString(obj.Object, "data", "number")
		return out
	}
	for name, want := range map[string]string{"kept": "two", "once": "one", "off": "gone"} {
		if got := value(name); got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
	w.ready("web", w.commit(map[string]string{"app/x.yaml": configMaps(1)}))
	if value("kept") != "two" || value("once") != "gone" {
		t.Errorf("kept = %s, once = %s, want two and gone", value("kept"), value("once"))
	}
}

func TestVariablesComeFromTheHub(t *testing.T) {
	w := newWorld(t)
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "vars"}, Data: map[string]string{"colour": "red", "size": "1"}})
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "vars"}, StringData: map[string]string{"size": "2\n"}})
	revision := w.commit(map[string]string{"app/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out, namespace: NAMESPACE}\ndata: {all: \"${colour} ${size} ${shape} ${rest:=default}\"}\n"})
	w.kustomization("web", func(spec *kustomizev1.KustomizationSpec) {
		spec.CommonMetadata = &kustomizev1.CommonMetadata{Labels: map[string]string{"team": "shop"}}
		spec.PostBuild = &kustomizev1.PostBuild{
			Substitute: map[string]string{"shape": "round"},
			SubstituteFrom: []kustomizev1.SubstituteReference{
				{Kind: "ConfigMap", Name: "vars"}, {Kind: "Secret", Name: "vars"}, {Kind: "Secret", Name: "nothing", Optional: true},
			},
		}
	})
	w.ready("web", revision)
	out := w.configMap("out")
	if got, _, _ := unstructured.NestedString(out.Object, "data", "all"); got != "red 2 round default" {
		t.Errorf("all = %q", got)
	}
	if out.GetLabels()["team"] != "shop" {
		t.Errorf("labels = %v", out.GetLabels())
	}
}

// Variables that are created or change are noticed without waiting for the interval: missing ones by a short retry, and
// others by the watch on Flux's label.
func TestVariablesThatChange(t *testing.T) {
	w := newWorld(t)
	revision := w.commit(map[string]string{"app/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out, namespace: NAMESPACE}\ndata:\n  colour: ${colour}\n"})
	w.kustomization("web", func(spec *kustomizev1.KustomizationSpec) {
		spec.RetryInterval = &metav1.Duration{Duration: time.Hour}
		spec.PostBuild = &kustomizev1.PostBuild{SubstituteFrom: []kustomizev1.SubstituteReference{{Kind: "Secret", Name: "vars"}}}
	})
	w.awaitReason("web", revision, meta.BuildFailedReason)
	vars := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "vars", Labels: map[string]string{meta.LabelKeyWatch: "Enabled"}}, StringData: map[string]string{"colour": "{"}}
	w.create(vars)
	w.until("what is no YAML any more is not the end", func() (bool, string) {
		ready := apimeta.FindStatusCondition(w.get("web").Status.Conditions, meta.ReadyCondition)
		return strings.Contains(ready.Message, "no longer YAML") && apimeta.FindStatusCondition(w.get("web").Status.Conditions, meta.StalledCondition) == nil, ready.Message
	})
	for _, colour := range []string{"blue", "green"} {
		vars.StringData = map[string]string{"colour": colour}
		if err := w.Hub.Update(t.Context(), vars); err != nil {
			t.Fatal(err)
		}
		w.until("it is "+colour, func() (bool, string) {
			out := w.configMap("out")
			if out == nil {
				return false, "nothing"
			}
			got, _, _ := unstructured.NestedString(out.Object, "data", "colour")
			return got == colour, got
		})
	}
}

// An invalid number of clusters in the annotation is reported, and nothing is applied until it is valid.
func TestANumberOfClustersThatIsNone(t *testing.T) {
	w := newWorld(t)
	w.kustomization("web", waiting)
	first := w.commit(map[string]string{"app/x.yaml": configMaps(1)})
	w.ready("web", first)
	w.annotate("web", health.MaxUnreachableAnnotation, "one")
	message := w.awaitReason("web", first, kustomizations.ReasonInvalidAnnotation)
	if want := `the annotation kustomize.flotilla.io/max-unreachable is "one"`; !strings.Contains(message, want) {
		t.Errorf("message = %q, want it to say %q", message, want)
	}
	w.annotate("web", health.MaxUnreachableAnnotation, "1")
	w.ready("web", first)
}
