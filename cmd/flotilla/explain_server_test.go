package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestExplainServer explains the example of docs/cli.md on a real control plane.
func TestExplainServer(t *testing.T) {
	env := servertest.New(t)
	store(t, env)
	ask := func(t *testing.T, kubeconfig, in string, args ...string) (int, string, string) {
		t.Helper()
		return explainRun(t, in, append([]string{"--kubeconfig", kubeconfig}, args...)...)
	}
	docs, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(docs), "$ flotilla explain deployment/web -n shop\n")
	want, _, _ := strings.Cut(rest, "```")

	for _, args := range [][]string{
		{"deployment/web", "-n", "shop"}, {"Deployment", "web", "-n", "shop"}, {"deploy/web", "--namespace=shop", "-o", "text"},
		{"deployments.apps/web", "-n", "shop"}, {"deployments.v1.apps", "web", "-n", "shop"},
		{"rb/web-deployment", "-n", "shop"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			code, out, errOut := ask(t, env.Kubeconfig, "", args...)
			if diff := cmp.Diff(want, out); diff != "" || code != 0 || errOut != "" {
				t.Errorf("code %d, error %q, output (-want +got):\n%s", code, errOut, diff)
			}
		})
	}
	t.Run("json and yaml", func(t *testing.T) {
		for _, format := range []string{"json", "yaml"} {
			code, out, errOut := ask(t, env.Kubeconfig, "", "deploy/web", "-n", "shop", "-o", format)
			e := decode(t, out)
			if code != 0 || errOut != "" || e.Kind != explain.Kind || len(e.Policies) != 2 || e.Placement == nil || len(e.Placement.Terms) != 1 {
				t.Errorf("code %d, error %q, output:\n%s", code, errOut, out)
			}
		}
	})
	t.Run("one cluster", func(t *testing.T) {
		code, out, _ := ask(t, env.Kubeconfig, "", "deploy/web", "-n", "shop", "--cluster", "us-2")
		if code != 0 || !strings.Contains(out, "us-2     refused") || strings.Contains(out, "eu-1  ") {
			t.Errorf("code %d, output:\n%s", code, out)
		}
		if code, _, errOut := ask(t, env.Kubeconfig, "", "deploy/web", "-n", "shop", "--cluster", "mars"); code != 1 || !strings.Contains(errOut, "there is no cluster mars") {
			t.Errorf("code %d, error %q", code, errOut)
		}
	})
	t.Run("files", func(t *testing.T) { testFiles(t, env, ask) })
	t.Run("rights", func(t *testing.T) { testRights(t, env, ask) })
	t.Run("interpret", func(t *testing.T) { testInterpret(t, env) })
	t.Run("versions", func(t *testing.T) { testVersions(t, env, ask) })
	t.Run("calls", func(t *testing.T) {
		for call, says := range map[string]string{
			"deployment/gone -n shop": "there is no Deployment gone in namespace shop: flotilla get deployments.apps -n shop lists them; flotilla trace deployments.apps/gone -n shop says what became of one that was removed",
			"deployment/wbe -n shop":  "there is no Deployment wbe in namespace shop (did you mean web?): flotilla get deployments.apps -n shop lists them",
			"deployment/web":          "there is no Deployment web in namespace default (did you mean the one in shop?): flotilla get deployments.apps -n default lists them",
			"clusterrole/gone":        "there is no ClusterRole gone: flotilla get clusterroles.rbac.authorization.k8s.io lists them",
			"boat/web":                `the control plane knows no kind "boat": flotilla api-resources lists them`,
			"boat":                    `the control plane knows no kind "boat": flotilla api-resources lists them; an object is explained by KIND/NAME, such as deployment/boat`,
		} {
			if code, _, errOut := ask(t, env.Kubeconfig, "", strings.Fields(call)...); code != 1 || !strings.Contains(errOut, says) {
				t.Errorf("%s: code %d, error %q, want %q", call, code, errOut, says)
			}
		}
	})
	t.Run("fields", func(t *testing.T) {
		code, out, errOut := ask(t, env.Kubeconfig, "", "propagationpolicy.spec.placement", "-o", "plaintext")
		if code != 0 || !strings.Contains(out, "KIND:       PropagationPolicy") || !strings.Contains(out, "clusterAffinity") {
			t.Errorf("code %d, error %q, output:\n%s", code, errOut, out)
		}
	})
	t.Run("completion", func(t *testing.T) {
		for words, want := range map[string]string{
			"propagationp":               "propagationpolicies.policy.karmada.io",
			"deploy -n shop w":           "web",
			"-n shop deploy/w":           "deploy/web",
			"deploy/web --cluster eu":    "eu-1 eu-2",
			"deploy/web -o j":            "text json yaml",
			"deploy/web -n sh":           "shop",
			"deploy/web -n shop another": "",
		} {
			if got := complete(t, env.Kubeconfig, strings.Fields(words)); got != want {
				t.Errorf("%q is completed to %q, want %q", words, got, want)
			}
		}
	})
}

// store brings the example to the control plane.
func store(t *testing.T, env *servertest.Env) {
	t.Helper()
	data, err := os.ReadFile("../../policies/explain/testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all, err := readManifests([]string{"-"}, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	create := func(obj client.Object) {
		t.Helper()
		if err := env.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	for _, obj := range all.policies {
		create(obj)
	}
	carrier := &policyv1alpha1.PropagationPolicy{}
	if err := env.Hub.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, carrier); err != nil {
		t.Fatal(err)
	}
	for _, obj := range all.templates {
		status, reported := obj.Object["status"]
		if obj.GetNamespace() != "" {
			obj.SetUID("")
			propagation.ClaimOf(carrier).Set(obj)
		}
		if obj.GetKind() == "Cluster" {
			set(t, obj, "Pull", "spec", "syncMode")
			set(t, obj, "id-of-"+obj.GetName(), "spec", "id")
		}
		if obj.GetKind() == "Deployment" {
			set(t, obj, map[string]any{"matchLabels": map[string]any{"app": "web"}}, "spec", "selector")
			set(t, obj, map[string]any{"app": "web"}, "spec", "template", "metadata", "labels")
		}
		create(obj)
		if !reported {
			continue
		}
		obj.Object["status"] = status
		if err := env.Hub.Status().Update(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	storeWorks(t, env)
}

func set(t *testing.T, obj *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(obj.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

// storeWorks makes the Works that the binding's status tells of.
func storeWorks(t *testing.T, env *servertest.Env) {
	t.Helper()
	b := &workv1alpha2.ResourceBinding{}
	if err := env.Hub.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-deployment"}, b); err != nil {
		t.Fatal(err)
	}
	for _, item := range b.Status.AggregatedStatus {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workv1alpha2.ExecutionNamespace(item.ClusterName)}}
		if err := env.Hub.Create(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		label := workv1alpha2.ResourceBindingPermanentIDLabel
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "web", Labels: map[string]string{label: b.Labels[label]}}}
		work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"}}`)}}}
		if err := env.Hub.Create(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		applied := metav1.Condition{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse, Reason: "AppliedFailed", Message: item.AppliedMessage, LastTransitionTime: metav1.Now()}
		if item.Applied {
			applied.Status = metav1.ConditionTrue
		}
		work.Status.Conditions = []metav1.Condition{applied}
		work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: item.Health, Identifier: workv1alpha1.ResourceIdentifier{Version: "v1", Kind: "Deployment", Name: "web"}}}
		if err := env.Hub.Status().Update(t.Context(), work); err != nil {
			t.Fatal(err)
		}
	}
}

type asker = func(t *testing.T, kubeconfig, in string, args ...string) (int, string, string)

// testFiles: objects in files replace those on the control plane.
func testFiles(t *testing.T, env *servertest.Env, ask asker) {
	t.Helper()
	const api = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: api}\nspec: {replicas: 2}\n"
	const policy = "---\napiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: api}\nspec:\n" +
		"  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: api}]\n  placement: {clusterAffinity: {clusterNames: [eu-1]}}\n"
	code, out, errOut := ask(t, env.Kubeconfig, api, "-n", "shop", "-f", "-", "-o", "json")
	if e := decode(t, out); code != 0 || errOut != "" || e.Resource.Stored || e.Carried.Now == nil || e.Carried.Now.Name != "everything" {
		t.Errorf("a new manifest: code %d, error %q, output:\n%s", code, errOut, out)
	}
	code, out, errOut = ask(t, env.Kubeconfig, api+policy, "-n", "shop", "-f", "-", "-o", "json")
	e := decode(t, out)
	if code != 0 || errOut != "" || e.Carried.Now == nil || e.Carried.Now.Name != "api" || !cmp.Equal(e.Placement.Now.Clusters, []explain.Target{{Name: "eu-1", Replicas: 2}}) {
		t.Errorf("with its policy: code %d, error %q, output:\n%s", code, errOut, out)
	}
	peer := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "peer-deployment"}}
	peer.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "peer"}
	peer.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "eu-2", Replicas: 1}}
	peer.Spec.WorkloadAffinityGroups = &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: "team=a"}
	if err := env.Hub.Create(t.Context(), peer); err != nil {
		t.Fatal(err)
	}
	grouped := strings.Replace(api, "{name: api}", "{name: api, labels: {team: a}}", 1) + strings.Replace(policy, "clusterAffinity: {clusterNames: [eu-1]}", "workloadAffinity: {affinity: {groupByLabelKey: team}}", 1)
	code, out, errOut = ask(t, env.Kubeconfig, grouped, "-n", "shop", "-f", "-", "-o", "json")
	e = decode(t, out)
	if code != 0 || errOut != "" || !cmp.Equal(e.Placement.Groups, []explain.Group{{Name: "team=a", Clusters: []string{"eu-2"}}}) {
		t.Errorf("a first placement with others of its group: code %d, error %q, output:\n%s", code, errOut, out)
	}
	if err := env.Hub.Delete(t.Context(), peer); err != nil {
		t.Fatal(err)
	}
	const moved = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: web}\nspec:\n" +
		"  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]\n  placement: {clusterAffinity: {clusterNames: [lab-1]}}\n"
	code, out, errOut = ask(t, env.Kubeconfig, moved, "deployment/web", "-n", "shop", "-f", "-", "-o", "json")
	e = decode(t, out)
	if code != 0 || errOut != "" || !e.Resource.Stored || e.Placement.Now.Due != "placement changed" || len(e.Placement.Now.Clusters) != 1 || e.Placement.Now.Clusters[0].Name != "lab-1" {
		t.Errorf("a new version of its policy: code %d, error %q, output:\n%s", code, errOut, out)
	}
	const grown = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {replicas: 9}\n"
	code, out, errOut = ask(t, env.Kubeconfig, grown, "-f", "-", "-o", "json")
	e = decode(t, out)
	if code != 0 || errOut != "" || !e.Resource.Stored || e.Carried.By == nil || e.Placement.Now.Due != "replicas changed" {
		t.Errorf("a new version of itself: code %d, error %q, output:\n%s", code, errOut, out)
	}
}

// testRights: a user who may only read the template gets the rights that are missing.
func testRights(t *testing.T, env *servertest.Env, ask asker) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "jane"}},
	}
	for _, obj := range []client.Object{role, binding} {
		if err := env.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	jane := kubeconfigAs(t, env.Kubeconfig, "jane")
	code, out, errOut := ask(t, jane, "", "deployment/web", "-n", "shop", "-o", "json")
	e := decode(t, out)
	if code != 0 || errOut != "" || len(e.Problems) > 0 || len(e.Unread) != 8 || e.Carried.By == nil || e.Carried.By.Name != "web" {
		t.Errorf("code %d, error %q, output:\n%s", code, errOut, out)
	}
	code, out, errOut = ask(t, kubeconfigAs(t, env.Kubeconfig, "john"), "", "deployment/web", "-n", "shop")
	if code != 1 || out != "" || !strings.Contains(errOut, `"john" cannot get resource "deployments"`) || !strings.HasSuffix(errOut, ": ask for the right to do it\n") {
		t.Errorf("code %d, error %q, output:\n%s", code, errOut, out)
	}
}

// kubeconfigAs copies a kubeconfig for another user.
func kubeconfigAs(t *testing.T, path, user string) string {
	t.Helper()
	return commandtest.Changed(t, path, func(info *clientcmdapi.AuthInfo) { info.Impersonate = user })
}

func decode(t *testing.T, text string) explain.Explanation {
	t.Helper()
	var e explain.Explanation
	if err := yaml.Unmarshal([]byte(text), &e); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return e
}

// complete returns what a shell would offer for the last word.
func complete(t *testing.T, kubeconfig string, words []string) string {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	result := commandtest.Run(t.Context(), newCommand("flotilla"), "", append([]string{"__complete", "explain", "--kubeconfig", kubeconfig}, words...)...)
	if result.Code != 0 {
		t.Errorf("code %d: %s", result.Code, result.Err)
	}
	offered, _, _ := strings.Cut(result.Out, ":")
	return strings.Join(strings.Fields(offered), " ")
}
