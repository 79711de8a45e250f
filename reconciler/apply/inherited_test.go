package apply_test

import (
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
)

// handedOn is a Kustomization in the files of another one.
func handedOn(namespace, name, spec string) string {
	return "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: " + namespace + "}\n" +
		"spec: {sourceRef: {kind: GitRepository, name: fleet}, interval: 10m, retryInterval: 1s, prune: true, " + spec + "}\n"
}

// What a Kustomization hands on to others by variables is told by none of them.
func TestWhatIsHandedOnIsNotReported(t *testing.T) {
	logs := &logged{}
	w := newWorldLogging(t, funcr.New(logs.add, funcr.Options{}))
	config := func(name, label string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: " + w.namespace + ", labels: {x: \"" + label + "\"}}\n"
	}
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "vars"}, StringData: map[string]string{"TOKEN": "canarytok3n"}})
	revision := w.commit(map[string]string{
		"app/x.yaml": handedOn(w.namespace, "variable", `path: ./variable, postBuild: {substitute: {X: "${TOKEN}"}}`) +
			handedOn(w.namespace, "metadata", `path: ./metadata, commonMetadata: {labels: {x: "a b ${TOKEN}"}}`) +
			handedOn(w.namespace, "path", `path: "./no/${TOKEN}"`) +
			handedOn(w.namespace, "dependency", `path: ./metadata, dependsOn: [{name: "${TOKEN}"}]`) +
			handedOn(w.namespace, "middle", `path: ./middle, postBuild: {substitute: {X: "${TOKEN}"}}`),
		"variable/x.yaml":   config("variable", "a b ${X^^} ${X}"),
		"metadata/x.yaml":   config("metadata", "y"),
		"middle/x.yaml":     handedOn(w.namespace, "grandchild", `path: ./grandchild, postBuild: {substitute: {Y: "${X}"}}`),
		"grandchild/x.yaml": config("grandchild", "a b ${Y}"),
	})
	w.kustomization("parent", func(spec *kustomizev1.KustomizationSpec) {
		spec.PostBuild = &kustomizev1.PostBuild{SubstituteFrom: []kustomizev1.SubstituteReference{{Kind: "Secret", Name: "vars"}}}
	})
	t.Cleanup(func() {
		for _, name := range []string{"variable", "metadata", "path", "dependency", "middle", "grandchild"} {
			w.remove(name)
		}
	})
	w.ready("parent", revision)
	w.ready("middle", revision)
	for name, reason := range map[string]string{
		"variable": applier.ReasonInvalidObject, "metadata": applier.ReasonInvalidObject, "grandchild": applier.ReasonInvalidObject,
		"path": "PathNotFound", "dependency": meta.DependencyNotReadyReason,
	} {
		message := w.awaitReason(name, revision, reason)
		text := w.texts(name, logs)
		if !strings.Contains(message, "***") || strings.Contains(strings.ToLower(text), "canarytok3n") {
			t.Errorf("%s tells:\n%s", name, text)
		}
	}
}
