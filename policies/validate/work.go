package validate

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// DefaultWork fills in w: it gets the permanent id that newID returns unless it
// has one, and its manifests are brought into the form in which they are sent.
// Works that plan made stay as they are.
//
// It fails where a manifest is no object.
func DefaultWork(w *workv1alpha1.Work, newID func() string) error {
	if w.Labels[workv1alpha2.WorkPermanentIDLabel] == "" {
		setLabel(w, workv1alpha2.WorkPermanentIDLabel, newID())
	}
	for i := range w.Spec.Workload.Manifests {
		m := &w.Spec.Workload.Manifests[i]
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(m.Raw); err != nil {
			return fmt.Errorf("manifest %d: %w", i, err)
		}
		before := obj.DeepCopy()
		plan.Prepare(obj, w.Labels[workv1alpha2.WorkPermanentIDLabel])
		if plan.SameObject(before, obj) {
			continue
		}
		encoded, err := plan.Encode(obj)
		if err != nil {
			return fmt.Errorf("manifest %d: %w", i, err)
		}
		*m = encoded
	}
	return nil
}

// Work says what is wrong with w.
func Work(w *workv1alpha1.Work) (field.ErrorList, []string) {
	var errs field.ErrorList
	for i := range w.Spec.Workload.Manifests {
		path := field.NewPath("spec", "workload", "manifests").Index(i)
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(w.Spec.Workload.Manifests[i].Raw); err != nil {
			errs = append(errs, field.Invalid(path, "", err.Error()))
			continue
		}
		if obj.GetAPIVersion() == "" {
			errs = append(errs, field.Required(path.Child("apiVersion"), ""))
		}
		if obj.GetName() == "" {
			errs = append(errs, field.Required(path.Child("metadata", "name"), "manifests need a name of their own"))
		}
	}
	return errs, nil
}

// Binding says what is wrong with b.
func Binding(b workv1alpha2.Binding) (field.ErrorList, []string) {
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
	return errs, nil
}
