package validate

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/override"
)

// Override says what is wrong with o. old is what o was, nil on creation.
func Override(o, old policyv1alpha1.Override) (field.ErrorList, []string) {
	if errs := tooMany(listsOfOverride(o), listsOfOverride(old)); len(errs) > 0 {
		return errs, nil
	}
	spec, path := o.OverrideSpec(), field.NewPath("spec")
	errs := selectors(spec.ResourceSelectors, o.GetNamespace(), path.Child("resourceSelectors"))
	legacy := spec.TargetCluster != nil || !emptyOverriders(&spec.Overriders)
	var warnings []string
	if legacy {
		warnings = append(warnings, "spec.targetCluster and spec.overriders are deprecated: use spec.overrideRules")
	}
	if legacy && len(spec.OverrideRules) > 0 {
		errs = append(errs, field.Invalid(path.Child("overrideRules"), len(spec.OverrideRules),
			"overrideRules and (targetCluster or overriders) can't co-exist"))
	}
	errs = append(errs, affinity(spec.TargetCluster, path.Child("targetCluster"))...)
	errs = append(errs, overriders(&spec.Overriders, path.Child("overriders"))...)
	for i := range spec.OverrideRules {
		at := path.Child("overrideRules").Index(i)
		errs = append(errs, affinity(spec.OverrideRules[i].TargetCluster, at.Child("targetCluster"))...)
		errs = append(errs, overriders(&spec.OverrideRules[i].Overriders, at.Child("overriders"))...)
	}
	return errs, append(warnings, overrideAdvice(spec, path)...)
}

func emptyOverriders(o *policyv1alpha1.Overriders) bool {
	return len(o.Plaintext)+len(o.ImageOverrider)+len(o.CommandOverrider)+len(o.ArgsOverrider)+
		len(o.LabelsOverrider)+len(o.AnnotationsOverrider)+len(o.FieldOverrider) == 0
}

func overriders(o *policyv1alpha1.Overriders, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range o.ImageOverrider {
		if p := o.ImageOverrider[i].Predicate; p != nil {
			errs = append(errs, pointer(p.Path, path.Child("imageOverrider").Index(i).Child("predicate", "path"))...)
		}
	}
	for i := range o.LabelsOverrider {
		at := path.Child("labelsOverrider").Index(i).Child("value")
		errs = append(errs, metav1validation.ValidateLabels(o.LabelsOverrider[i].Value, at)...)
	}
	for i := range o.AnnotationsOverrider {
		at := path.Child("annotationsOverrider").Index(i).Child("value")
		errs = append(errs, apivalidation.ValidateAnnotations(o.AnnotationsOverrider[i].Value, at)...)
	}
	for i := range o.Plaintext {
		errs = append(errs, pointer(o.Plaintext[i].Path, path.Child("plaintext").Index(i).Child("path"))...)
	}
	for i := range o.FieldOverrider {
		errs = append(errs, fieldOverrider(&o.FieldOverrider[i], path.Child("fieldOverrider").Index(i))...)
	}
	if n := len(o.Plaintext); n > override.MaxOperations {
		errs = append(errs, field.TooMany(path.Child("plaintext"), n, override.MaxOperations))
	}
	return errs
}

func fieldOverrider(o *policyv1alpha1.FieldOverrider, path *field.Path) field.ErrorList {
	errs := pointer(o.FieldPath, path.Child("fieldPath"))
	if (len(o.JSON) == 0) == (len(o.YAML) == 0) {
		errs = append(errs, field.Invalid(path, o.FieldPath, "exactly one of json and yaml must be set"))
	}
	for i, op := range o.JSON {
		errs = append(errs, operation(op.SubPath, op.Operator, op.Value, path.Child("json").Index(i))...)
	}
	for i, op := range o.YAML {
		errs = append(errs, operation(op.SubPath, op.Operator, op.Value, path.Child("yaml").Index(i))...)
	}
	return errs
}

func operation(subPath string, op policyv1alpha1.OverriderOperator, value apiextensionsv1.JSON, path *field.Path) field.ErrorList {
	errs := pointer(subPath, path.Child("subPath"))
	given := len(value.Raw) > 0 && string(value.Raw) != "null"
	switch {
	case op == policyv1alpha1.OverriderOpRemove && given:
		errs = append(errs, field.Invalid(path.Child("value"), string(value.Raw), "value is not allowed for remove operation"))
	case op != policyv1alpha1.OverriderOpRemove && !given:
		errs = append(errs, field.Required(path.Child("value"), "value is required for add or replace operation"))
	}
	return errs
}

func pointer(p string, path *field.Path) field.ErrorList {
	if err := override.CheckPointer(p); err != nil {
		return field.ErrorList{field.Invalid(path, p, err.Error())}
	}
	return nil
}
