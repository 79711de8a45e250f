package builder

import (
	"encoding/json"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/secrets"
)

// handed are the fields of a Kustomization's spec whose text comes into what it builds, besides its variables: of those the objects that
// use one are known. The first are in names.
var handed = []string{"namePrefix", "nameSuffix", "commonMetadata", "components", "images", "patches", "targetNamespace"}

// inNames are how many of them.
const inNames = 2

// remembering returns the input with what its Reveal is called with.
func (in Input) remembering() (out Input, texts *[]string) {
	texts = &[]string{}
	if reveal := in.Reveal; reveal != nil {
		in.Reveal = func(text string) {
			*texts = append(*texts, text)
			reveal(text)
		}
	}
	return in, texts
}

// handOn says on the Kustomizations among built objects, and on what this one builds as another one put text of a Secret into it, where
// such text is. texts are what shows a value of a Secret.
func (in Input) handOn(objects []*unstructured.Unstructured, texts []string) {
	in.inherit(objects)
	var values *secrets.Values
	for _, obj := range objects {
		if !isKustomization(obj) || obj.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] == "" || obj.GetAnnotations()[gitopsv1alpha1.HoldsSecretsInAnnotation] != "" {
			continue
		}
		if values == nil {
			values = &secrets.Values{}
			for _, text := range texts {
				values.Keep(text)
			}
		}
		annotate(obj, gitopsv1alpha1.HoldsSecretsInAnnotation, fieldsOf(obj, func(text string) bool { return values.Hide(text) != text }))
	}
}

// inherit marks what this Kustomization builds, if another one put text of a Secret into a field that comes into it.
func (in Input) inherit(objects []*unstructured.Unstructured) {
	own := in.Kustomization.Annotations
	if own[gitopsv1alpha1.HoldsSecretsAnnotation] == "" || own[gitopsv1alpha1.HoldsSecretsInAnnotation] == "" {
		return
	}
	fields, mark := strings.Split(own[gitopsv1alpha1.HoldsSecretsInAnnotation], ","), gitopsv1alpha1.HoldsInFields
	if slices.ContainsFunc(fields, func(field string) bool { return slices.Contains(handed[:inNames], field) }) {
		mark = gitopsv1alpha1.HoldsInName
	}
	for _, obj := range objects {
		if obj.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] != gitopsv1alpha1.HoldsInName {
			annotate(obj, gitopsv1alpha1.HoldsSecretsAnnotation, mark)
		}
		if isKustomization(obj) { // a patch may have put it into any field
			annotate(obj, gitopsv1alpha1.HoldsSecretsInAnnotation, fieldsOf(obj, func(string) bool { return true }))
		}
	}
}

func isKustomization(obj *unstructured.Unstructured) bool {
	gk := obj.GroupVersionKind().GroupKind()
	return gk.Group == kustomizev1.GroupVersion.Group && gk.Kind == kustomizev1.KustomizationKind
}

// fieldsOf returns those of the fields that an object has, and whose content, as JSON, is of a kind, between commas.
func fieldsOf(obj *unstructured.Unstructured, is func(text string) bool) string {
	spec, _ := obj.Object["spec"].(map[string]any)
	var out []string
	for _, field := range handed {
		text, err := json.Marshal(spec[field])
		if spec[field] != nil && err == nil && is(string(text)) {
			out = append(out, field)
		}
	}
	return strings.Join(out, ",")
}

// annotate sets an annotation, unless the value is empty.
func annotate(obj *unstructured.Unstructured, key, value string) {
	if value == "" {
		return
	}
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}
