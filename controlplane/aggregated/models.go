package aggregated

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// validateModels demands that the models' ranges follow one another without gap
// or overlap, from nothing to everything, for the same resources in each.
func validateModels(models []clusterv1alpha1.ResourceModel, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, model := range models {
		at := path.Index(i)
		errs = append(errs, validateRanges(model, at)...)
		if i == 0 {
			errs = append(errs, startsAtZero(model, at)...)
		} else {
			errs = append(errs, follows(models[i-1], model, at)...)
		}
		if i == len(models)-1 {
			errs = append(errs, endsAtInfinity(model, at)...)
		}
	}
	return errs
}

func validateRanges(model clusterv1alpha1.ResourceModel, path *field.Path) field.ErrorList {
	if len(model.Ranges) == 0 {
		return field.ErrorList{field.Required(path.Child("ranges"), "")}
	}
	var errs field.ErrorList
	for i, r := range model.Ranges {
		if r.Max.Cmp(r.Min) <= 0 {
			errs = append(errs, field.Invalid(path.Child("ranges").Index(i).Child("max"), r.Max.String(), "must be more than min"))
		}
	}
	return errs
}

func startsAtZero(model clusterv1alpha1.ResourceModel, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, r := range model.Ranges {
		if !r.Min.IsZero() {
			errs = append(errs, field.Invalid(path.Child("ranges").Index(i).Child("min"), r.Min.String(), "must be 0 in the first grade"))
		}
	}
	return errs
}

func endsAtInfinity(model clusterv1alpha1.ResourceModel, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, r := range model.Ranges {
		if r.Max.Value() != math.MaxInt64 {
			errs = append(errs, field.Invalid(path.Child("ranges").Index(i).Child("max"), r.Max.String(), fmt.Sprintf("must be %d in the last grade", math.MaxInt64)))
		}
	}
	return errs
}

// follows compares a model with the one before it.
func follows(before, model clusterv1alpha1.ResourceModel, path *field.Path) field.ErrorList {
	if model.Grade == before.Grade {
		return field.ErrorList{field.Duplicate(path.Child("grade"), model.Grade)}
	}
	if len(model.Ranges) != len(before.Ranges) {
		return field.ErrorList{field.Invalid(path.Child("ranges"), len(model.Ranges), fmt.Sprintf("must have %d ranges like every grade", len(before.Ranges)))}
	}
	var errs field.ErrorList
	for i, r := range model.Ranges {
		at := path.Child("ranges").Index(i)
		if r.Name != before.Ranges[i].Name {
			errs = append(errs, field.Invalid(at.Child("name"), r.Name, fmt.Sprintf("must be %s like in every grade", before.Ranges[i].Name)))
		} else if r.Min.Cmp(before.Ranges[i].Max) != 0 {
			errs = append(errs, field.Invalid(at.Child("min"), r.Min.String(), fmt.Sprintf("must be %s, where the grade before ends", before.Ranges[i].Max.String())))
		}
	}
	return errs
}
