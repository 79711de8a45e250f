package apply_test

import (
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
)

// TestNothingIsOfTwoRevisions: a commit changes the folder of a Kustomization and the spec that its parent gives it, or variables that
// another one holds. Until those are applied nothing of it is.
func TestNothingIsOfTwoRevisions(t *testing.T) {
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, namespace: NAMESPACE}\ndata: {number: \"VALUE-${REV}\"}\n"
	child := func(rev string) string {
		return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: child, namespace: NAMESPACE}\n" +
			"spec: {interval: 10m, retryInterval: 1s, prune: true, path: ./child, sourceRef: {kind: GitRepository, name: fleet}, postBuild: {substitute: {REV: " + rev + "}}}\n"
	}
	files := func(rev, gate string) map[string]string {
		of := func(name string) string {
			return strings.NewReplacer("name: NAME,", "name: "+name+",", "VALUE", rev).Replace(config)
		}
		return map[string]string{
			"gate/all.yaml": gate, "root/child.yaml": child(rev), "child/all.yaml": of("by-parent"), "app/all.yaml": of("by-variables"),
			"infra/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vars, namespace: NAMESPACE}\ndata: {REV: " + rev + "}\n",
		}
	}
	w := newWorld(t)
	first := w.commit(files("r1", named("gate")))
	w.kustomization("gate", in("./gate"))
	w.kustomization("root", in("./root", "gate"))
	w.kustomization("infra", in("./infra", "gate"))
	w.ready("infra", first)
	w.kustomization("app", in("./app"), func(spec *kustomizev1.KustomizationSpec) {
		spec.PostBuild = &kustomizev1.PostBuild{SubstituteFrom: []kustomizev1.SubstituteReference{{Kind: "ConfigMap", Name: "vars"}}}
	})
	w.ready("child", first)
	w.ready("app", first)

	second := w.commit(files("r2", "a: b\n"))
	w.awaitReason("root", second, meta.DependencyNotReadyReason)
	w.awaitReason("infra", second, meta.DependencyNotReadyReason)
	for name, want := range map[string]string{"child": "root, which gives this one another spec", "app": "infra, which holds the ConfigMap vars"} {
		if message := w.awaitReason(name, second, meta.ProgressingReason); !strings.Contains(message, want) {
			t.Errorf("%s: %s", name, message)
		}
	}
	for _, name := range []string{"by-parent", "by-variables"} {
		if got := w.number(name); got != "r1-r1" {
			t.Errorf("%s is %s meanwhile", name, got)
		}
	}
	third := w.commit(files("r2", named("gate")))
	w.ready("child", third)
	w.ready("app", third)
	for _, name := range []string{"by-parent", "by-variables"} {
		if got := w.number(name); got != "r2-r2" {
			t.Errorf("%s is %s in the end", name, got)
		}
	}

	files4 := files("r2", named("gate"))
	files4["infra/all.yaml"] = strings.Replace(files4["infra/all.yaml"], "REV: r2", "REV: r4", 1)
	fourth := w.commit(files4)
	w.ready("app", fourth)
	w.until("variables alone change", func() (bool, string) { return w.number("by-variables") == "r2-r4", w.number("by-variables") })
}
