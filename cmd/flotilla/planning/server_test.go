package planning

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/build"
)

// TestPlanServer: files are compared with what a control plane holds; its defaults make no difference, nothing is changed,
// and what it exports serves as the fleet.
func TestPlanServer(t *testing.T) {
	env := servertest.New(t)
	hold(t, env)
	t.Setenv("KUBECACHEDIR", t.TempDir())
	ask := func(args ...string) commandtest.Result {
		return commandtest.Run(t.Context(), commandtest.Root(Commands), "", append(args, "--kubeconfig", env.Kubeconfig)...)
	}
	const nothing = "Nothing changes in any cluster.\n"
	if got := ask("plan", "testdata/base", "--exit-code"); got.Code != 0 || got.Out != nothing {
		t.Errorf("what is there already: %s", got)
	}
	if got := ask("plan", "testdata/base", "--source", "gitrepository/fleet.shop", "--exit-code"); got.Code != 0 || got.Out != nothing {
		t.Errorf("what is there already, by its source: %s", got)
	}
	got := ask("plan", "testdata/head", "--exit-code")
	got.Out = digests.ReplaceAllString(got.Out, "(hidden: DIGEST)")
	golden(t, "server.golden", got.String())
	owned := ask("plan", "testdata/head", "--kustomization", "shop/apps")
	if !strings.Contains(owned.Out, "\nDELETED\n  ConfigMap shop/settings") {
		t.Errorf("what the Kustomization does not have any more is not deleted: %s", owned)
	}
	file := filepath.Join(t.TempDir(), "fleet.yaml")
	exported := ask("fleet", "export")
	write(t, file, exported.Out)
	if exported.Code != 0 || strings.Contains(exported.Out, "aHVudGVy") {
		t.Errorf("the export has a value of a Secret: %s", exported)
	}
	offline := call(t, "", "plan", "testdata/head", "--base", "testdata/base", "--fleet", file, "--kustomization", "shop/apps")
	if offline.Code != 0 || !strings.Contains(offline.Out, "-      - image: nginx:1.28") || !strings.Contains(offline.Out, "\nDELETED\n  ConfigMap shop/settings") {
		t.Errorf("by the export: %s", offline)
	}
	if got := ask("plan", "testdata/base", "--exit-code"); got.Code != 0 || got.Out != nothing {
		t.Errorf("a plan has changed something: %s", got)
	}
}

// hold stores three clusters and the files of base, as a Kustomization has applied them.
func hold(t *testing.T, env *servertest.Env) {
	t.Helper()
	ctx := t.Context()
	if err := env.Hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"eu-1", "eu-2", "us-1"} {
		c := cluster(name)
		c.Spec.Taints = nil
		status := c.Status
		if err := env.Hub.Create(ctx, &c); err != nil {
			t.Fatal(err)
		}
		c.Status = status
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ClusterReady"})
		if err := env.Hub.Status().Update(ctx, &c); err != nil {
			t.Fatal(err)
		}
	}
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "apps"}}
	ks.Spec.Prune, ks.Spec.Path, ks.Spec.Interval = true, "./", metav1.Duration{Duration: time.Minute}
	ks.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "fleet"}
	if err := env.Hub.Create(ctx, ks); err != nil {
		t.Fatal(err)
	}
	files, err := collect(ctx, "testdata/base", artifact.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{hub: env.Hub, as: env.Hub, builder: build.New(build.Limits{})}
	objects, err := w.build(ctx, ks, tree(files))
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		labels := obj.GetLabels()
		for name, value := range inventory.OwnerLabels(types.NamespacedName{Namespace: "shop", Name: "apps"}) {
			if labels[name] != value {
				t.Fatalf("%s has no owner: %v", obj.GetName(), labels)
			}
		}
		if err := env.Hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(applier.FieldManager)); err != nil {
			t.Fatal(err)
		}
	}
}
