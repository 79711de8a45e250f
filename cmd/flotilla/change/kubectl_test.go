package change_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

const applied = `apiVersion: v1
kind: ConfigMap
metadata: {name: greeting, namespace: shop}
data: {hello: world}
---
apiVersion: v1
kind: Namespace
metadata: {name: later}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "sea:reader"}
`

func testApply(t *testing.T, w *world) {
	got := w.call(t, applied, "apply", "-f", "-", "--cluster", "east")
	golden(t, "apply.txt", fmt.Sprintf("exit code %d\n%s%s", got.Code, got.Out, got.Err))
	policies := &policyv1alpha1.PropagationPolicyList{}
	if err := w.Hub.Hub.List(t.Context(), policies, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	var specs []policyv1alpha1.PropagationSpec
	for _, p := range policies.Items {
		if strings.HasPrefix(p.Name, "greeting-") {
			specs = append(specs, p.Spec)
		}
	}
	want := []policyv1alpha1.PropagationSpec{{
		ResourceSelectors:  []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "greeting"}},
		Placement:          policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east"}}},
		ConflictResolution: policyv1alpha1.ConflictAbort, Priority: new(int32), SchedulerName: "default-scheduler", Preemption: policyv1alpha1.PreemptNever,
	}}
	if diff := cmp.Diff(want, specs); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	servertest.Eventually(t, "it is in the member", func(ctx context.Context) error {
		return w.Edge.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "greeting"}, &corev1.ConfigMap{})
	})
	again := w.call(t, applied, "apply", "-f", "-", "--all-clusters")
	golden(t, "apply-again.txt", fmt.Sprintf("exit code %d\n%s%s", again.Code, again.Out, again.Err))
	testHalf(t, w)
	for args, want := range map[string]result{
		"apply -f - --cluster mars":                {Code: 1, Err: "error: there is no cluster mars: flotilla get clusters lists them\n"},
		"apply -f - --cluster east --all-clusters": {Code: 2, Err: "error: --all-clusters and --cluster cannot be used together\n"},
		"apply":   {Code: 2, Err: "error: must specify one of -f and -k\n"},
		"apply x": {Code: 2, Err: "error: \"x\" is too much: files are named by -f\n"},
	} {
		if diff := cmp.Diff(want, w.call(t, applied, strings.Fields(args)...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
}

// testHalf: if one object is refused nothing is written, and no policy is left behind.
func testHalf(t *testing.T, w *world) {
	t.Helper()
	const refused = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: half, namespace: shop}\ndata: {a: b}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wrong, namespace: shop}\ndata: {a: {b: c}}\n"
	const coming = "apiVersion: v1\nkind: Namespace\nmetadata: {name: coming}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first, namespace: coming}\ndata: {a: b}\n"
	got := w.call(t, refused, "apply", "-f", "-", "--all-clusters", "--validate=ignore")
	if got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, "cannot be handled as a ConfigMap") {
		t.Errorf("what is refused: %+v", got)
	}
	policies := &policyv1alpha1.PropagationPolicyList{}
	if err := w.Hub.Hub.List(t.Context(), policies, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	for _, p := range policies.Items {
		if strings.HasPrefix(p.Name, "half-") || strings.HasPrefix(p.Name, "wrong-") {
			t.Errorf("the policy %s is left behind", p.Name)
		}
	}
	if err := w.Hub.Hub.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "half"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("what was beside it: %v", err)
	}
	if got := w.call(t, coming, "apply", "-f", "-", "--all-clusters"); got.Code != 0 || strings.Count(got.Out, "created") != 3 {
		t.Errorf("with its namespace: %+v", got)
	}
	const late = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first, namespace: late}\ndata: {a: b}\n---\n" +
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: late}\n"
	if got := w.call(t, late, "apply", "-f", "-", "--all-clusters"); got.Code != 0 || strings.Count(got.Out, "created") != 3 || !strings.HasPrefix(got.Err, "note: the policy that was made stays when the object is deleted, until: flotilla delete propagationpolicy first-") {
		t.Errorf("with its namespace behind it: %+v", got)
	}
	const twice = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: twice, namespace: shop}\ndata: {a: b}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: twice, namespace: shop}\ndata: {a: c}\n"
	got = w.call(t, twice, "apply", "-f", "-", "--all-clusters")
	file, _, _ := strings.Cut(strings.TrimPrefix(got.Err, "error: ConfigMap shop/twice is there twice, in "), ": ")
	refusal := result{Code: 1, Err: "error: ConfigMap shop/twice is there twice, in " + file + ": nothing was written, remove one\n"}
	if diff := cmp.Diff(refusal, got); diff != "" || !strings.HasSuffix(file, ".yaml") {
		t.Errorf("one object twice (-want +got):\n%s", diff)
	}
}

func testKubectl(t *testing.T, w *world) {
	var all strings.Builder
	t.Setenv("KUBE_EDITOR", `sed -i s/world/moon/`)
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: hidden, namespace: shop}\nstringData: {password: {"+secretValue+": 1}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"create configmap made --from-literal=a=b -n shop",
		"create configmap made --from-literal=a=b -n shop",
		"create secret generic hidden --from-literal=password=" + secretValue + " -n shop",
		"create -f /nowhere.yaml",
		`patch secret hidden -n shop -p {"stringData":{"password":{"` + secretValue + `":1}}}`,
		"apply -f " + broken,
		"apply --server-side -f " + broken,
		"apply -f " + broken + " --cluster=",
		"label configmap made tier=front -n shop",
		"annotate configmap made note=hello -n shop",
		"patch configmap made -n shop --type=merge -p {\"data\":{\"a\":\"c\"}}",
		"patch configmap made -n shop -p not-json",
		"edit configmap greeting -n shop",
		"delete configmap made -n shop",
		"delete configmap made -n shop",
		"delete configmap made -n shop --ignore-not-found",
		"delete configmap made",
		"delete configmap made gone -n shop",
		"delete configmap/made secret/gone -n shop",
		"delete cluster gone",
		"delete namespace gone",
		"delete -f testdata/kept.yaml",
		"label -f testdata/kept.yaml tier=front",
		"edit configmap gone -n shop",
		"edit pod gone -n shop",
		"edit deployment gone -n shop",
		"edit shipyard x",
		"label configmap gone tier=front -n shop",
		"annotate configmap gone note=hello -n shop",
		"patch configmap gone -n shop -p {}",
		"create configmap made --from-literal=a=b -n gone",
		"delete boat",
		"delete",
		"delete shipyard x",
		"label configmap",
		"create deployment web -n shop",
		"create --nope",
		"annotate configmap greeting",
		"edit",
		"patch",
	} {
		got := w.call(t, "", strings.Fields(args)...)
		all.WriteString(got.To(strings.NewReplacer(secretValue, "…", broken, "broken.yaml").Replace(args)))
	}
	if strings.Contains(all.String(), secretValue) {
		t.Error("a secret was printed")
	}
	golden(t, "kubectl.txt", all.String())
}

func testProtected(t *testing.T, w *world) {
	if got := w.call(t, "", "label", "configmap", "greeting", "-n", "shop", "resourcetemplate.karmada.io/deletion-protected=Always"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	got := w.call(t, "", "delete", "configmap", "greeting", "-n", "shop")
	golden(t, "protected.txt", fmt.Sprintf("exit code %d\n%s%s", got.Code, got.Out, got.Err))
	if err := w.Hub.Hub.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "greeting"}, &corev1.ConfigMap{}); err != nil {
		t.Error(err)
	}
}
