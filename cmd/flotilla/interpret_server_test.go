package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

const doubled = `
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: doubled}
spec:
  target: {apiVersion: apps/v1, kind: Deployment}
  customizations:
    replicaResource:
      luaScript: |
        function GetReplicas(obj)
          return 2 * obj.spec.replicas
        end
    dependencyInterpretation:
      luaScript: |
        function GetDependencies(obj)
          return obj.spec.nowhere.list
        end
`

// testInterpret tries customizations against a control plane that holds the
// example, and edits one there.
func testInterpret(t *testing.T, env *servertest.Env) {
	ask := func(t *testing.T, args ...string) (int, string, string) {
		t.Helper()
		return interpretRun(t, "", append([]string{"--kubeconfig", env.Kubeconfig}, args...)...)
	}
	file := filepath.Join(t.TempDir(), "doubled.yaml")
	if err := os.WriteFile(file, []byte(doubled), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("what would change", func(t *testing.T) {
		code, out, errOut := ask(t, "--diff", "-f", file)
		for _, want := range []string{
			"InterpretReplica of Deployment shop/web: customization doubled, before native\n", "-replicas: 5\n+replicas: 10\n",
			"InterpretDependency of Deployment shop/web: customization doubled, before native\n  error: " + file + ":16: ",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("the output has no %q", want)
			}
		}
		if code != 1 || !strings.Contains(errOut, "1 answer would fail") {
			t.Errorf("code %d, error %q, output:\n%s", code, errOut, out)
		}
	})

	all, err := (&interpretFlags{files: []string{file}}).sources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	stored := all[0].Customization
	if err := env.Hub.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	t.Run("nothing would change", func(t *testing.T) {
		code, out, errOut := ask(t, "--diff", "-f", file)
		if code != 0 || out != "" || !strings.Contains(errOut, "0 answers would change") {
			t.Errorf("code %d, error %q, output:\n%s", code, errOut, out)
		}
	})
	t.Run("by name, and all there are", func(t *testing.T) {
		webs := []string{"--operation", "interpretReplica", "--desired-file", "testdata/interpret/webs.yaml"}
		for _, args := range [][]string{append([]string{"doubled"}, webs...), webs} {
			code, out, errOut := ask(t, args...)
			if code != 0 || !strings.HasPrefix(out, "InterpretReplica of Deployment shop/web: customization doubled\nreplicas: 8\n") {
				t.Errorf("%v: code %d, error %q, output:\n%s", args, code, errOut, out)
			}
		}
		if code, _, errOut := ask(t, append([]string{"gone"}, webs...)...); code != 1 || !strings.Contains(errOut, `"gone" not found`) {
			t.Errorf("code %d, error %q", code, errOut)
		}
	})
	t.Run("an explanation goes by it", func(t *testing.T) {
		code, out, errOut := explainRun(t, "", "--kubeconfig", env.Kubeconfig, "deployment/web", "-n", "shop")
		if code != 0 || !strings.HasPrefix(out, "Deployment shop/web (apps/v1), 10 replicas\n") {
			t.Errorf("code %d, error %q, output:\n%s", code, errOut, out)
		}
	})
	t.Run("edited", func(t *testing.T) {
		editWith(t, `sed -i 's/2 \* obj/3 * obj/' "$1"`)
		code, out, errOut := ask(t, "doubled", "--edit")
		now := &configv1alpha1.ResourceInterpreterCustomization{}
		if err := env.Hub.Get(t.Context(), client.ObjectKeyFromObject(stored), now); err != nil {
			t.Fatal(err)
		}
		script := now.Spec.Customizations.ReplicaResource.LuaScript
		if code != 0 || !strings.Contains(out, "+  return 3 * obj.spec.replicas\n") || !strings.Contains(script, "3 * obj") || now.Spec.Customizations.DependencyInterpretation == nil {
			t.Errorf("code %d, error %q, output %q, script %q", code, errOut, out, script)
		}
	})
	t.Run("edited by two", func(t *testing.T) {
		f := &interpretFlags{hub: &fleet.Flags{Kubeconfig: env.Kubeconfig}}
		late := stored.DeepCopy()
		late.SetResourceVersion("1")
		err := f.store(t.Context(), late, configv1alpha1.CustomizationRules{})
		if err == nil || !strings.Contains(err.Error(), "was changed meanwhile") {
			t.Errorf("the second edit says %v", err)
		}
	})
	if err := env.Hub.Delete(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
}
