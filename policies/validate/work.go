package validate

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// DefaultWork brings the manifests of w, which has its permanent id, into the
// form in which they are sent; before is what w replaces, nil if it is new. Works
// that plan made stay as they are, and so does a manifest that is no object: Work
// refuses it.
func DefaultWork(w, before *workv1alpha1.Work) {
	id := w.Labels[workv1alpha2.WorkPermanentIDLabel]
	for i := range w.Spec.Workload.Manifests {
		m := &w.Spec.Workload.Manifests[i]
		if before != nil && i < len(before.Spec.Workload.Manifests) && bytes.Equal(m.Raw, before.Spec.Workload.Manifests[i].Raw) {
			continue // was seen to when it came; the id stays
		}
		if prepared, err := prepare(m.Raw, id); err == nil {
			*m = prepared
		}
	}
}

// prepare returns a manifest in the form in which it is sent.
func prepare(raw []byte, id string) (workv1alpha1.Manifest, error) {
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(raw); err != nil {
		return workv1alpha1.Manifest{}, fmt.Errorf("read manifest: %w", err)
	}
	plan.Prepare(obj, id)
	return plan.Encode(obj)
}

// Work says what is wrong with w.
func Work(w *workv1alpha1.Work) field.ErrorList {
	var errs field.ErrorList
	for i := range w.Spec.Workload.Manifests {
		path := field.NewPath("spec", "workload", "manifests").Index(i)
		var m metav1.PartialObjectMetadata
		if err := utiljson.Unmarshal(w.Spec.Workload.Manifests[i].Raw, &m); err != nil { // as members do: case counts
			errs = append(errs, field.Invalid(path, "", err.Error()))
			continue
		}
		if m.Kind == "" {
			errs = append(errs, field.Required(path.Child("kind"), ""))
		}
		if m.APIVersion == "" {
			errs = append(errs, field.Required(path.Child("apiVersion"), ""))
		}
		if m.Name == "" {
			errs = append(errs, field.Required(path.Child("metadata", "name"), "manifests need a name of their own"))
		}
	}
	return errs
}

// Binding says what is wrong with b.
func Binding(b workv1alpha2.Binding) field.ErrorList {
	var errs field.ErrorList
	if text := b.GetAnnotations()[workv1alpha2.BindingDependenciesAnnotationKey]; text != "" {
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			path := field.NewPath("metadata", "annotations").Key(workv1alpha2.BindingDependenciesAnnotationKey)
			errs = append(errs, field.Invalid(path, text, "must be a JSON array: "+err.Error()))
		}
	}
	names := map[string]bool{}
	for i, c := range b.BindingSpec().Components {
		path := field.NewPath("spec", "components").Index(i).Child("name")
		switch {
		case c.Name == "":
			errs = append(errs, field.Required(path, "component names cannot be empty"))
		case names[c.Name]:
			errs = append(errs, field.Duplicate(path, c.Name))
		}
		names[c.Name] = true
	}
	return errs
}
