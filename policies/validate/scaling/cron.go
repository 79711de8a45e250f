package scaling

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	autoscalingv1alpha1 "github.com/flotilla-io/flotilla/api/autoscaling/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/validate/syntax"
)

// Bounds and defaults of rules.
const (
	maxRuleName    = 32
	maxHistory     = 32
	defaultHistory = 3
	minSucceeded   = 1
	minFailed      = 0
	cronTarget     = "FederatedHPA"
)

// DefaultCron fills in what the schema of a says where a says nothing.
func DefaultCron(a *autoscalingv1alpha1.CronFederatedHPA) {
	for i := range a.Spec.Rules {
		r := &a.Spec.Rules[i]
		if r.Suspend == nil {
			r.Suspend = ptr.To(false)
		}
		if r.SuccessfulHistoryLimit == nil {
			r.SuccessfulHistoryLimit = ptr.To[int32](defaultHistory)
		}
		if r.FailedHistoryLimit == nil {
			r.FailedHistoryLimit = ptr.To[int32](defaultHistory)
		}
	}
}

// Cron says what is wrong with a.
func Cron(a *autoscalingv1alpha1.CronFederatedHPA) (field.ErrorList, []string) {
	spec, path := &a.Spec, field.NewPath("spec")
	target := path.Child("scaleTargetRef")
	var errs field.ErrorList
	var warnings []string
	for _, e := range scaleTarget(&spec.ScaleTargetRef, target) {
		warnings = append(warnings, e.Error()+", so nothing is ever scaled: correct it")
	}
	scalesAutoscaler := strings.HasPrefix(spec.ScaleTargetRef.APIVersion, autoscalingv1alpha1.GroupName+"/")
	if scalesAutoscaler && spec.ScaleTargetRef.Kind != cronTarget {
		errs = append(errs, field.NotSupported(target.Child("kind"), spec.ScaleTargetRef.Kind, []string{cronTarget}))
	}
	names := map[string]bool{}
	for i := range spec.Rules {
		r, at := &spec.Rules[i], path.Child("rules").Index(i)
		switch {
		case r.Name == "":
			errs = append(errs, field.Required(at.Child("name"), ""))
		case len(r.Name) > maxRuleName:
			errs = append(errs, field.TooLong(at.Child("name"), r.Name, maxRuleName))
		case names[r.Name]:
			errs = append(errs, field.Duplicate(at.Child("name"), r.Name))
		}
		names[r.Name] = true
		errs = append(errs, schedule(r, at)...)
		if zoned(r.Schedule) {
			warnings = append(warnings, syntax.Advise(at.Child("schedule"), "names a time zone: use timeZone instead"))
		}
		if scalesAutoscaler {
			errs = append(errs, autoscalerBounds(r, at)...)
		} else {
			errs = append(errs, replicaTarget(r, at)...)
		}
		errs = append(errs, history(r.SuccessfulHistoryLimit, minSucceeded, at.Child("successfulHistoryLimit"))...)
		errs = append(errs, history(r.FailedHistoryLimit, minFailed, at.Child("failedHistoryLimit"))...)
	}
	if len(spec.Rules) == 0 {
		warnings = append(warnings, syntax.Advise(path.Child("rules"), "is empty, so nothing is ever scaled: add a rule"))
	}
	return errs, warnings
}

// zoned reports whether a schedule begins with a time zone.
func zoned(schedule string) bool {
	return strings.HasPrefix(schedule, "TZ=") || strings.HasPrefix(schedule, "CRON_TZ=")
}

func schedule(r *autoscalingv1alpha1.CronFederatedHPARule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := path.Child("schedule")
	if zoned(r.Schedule) && !strings.Contains(r.Schedule, " ") { // the parser would panic
		errs = append(errs, field.Invalid(at, r.Schedule, "is a time zone without a schedule"))
	} else if _, err := cron.ParseStandard(r.Schedule); err != nil {
		errs = append(errs, field.Invalid(at, r.Schedule, "must be five fields of a cron schedule: "+err.Error()))
	}
	if r.TimeZone == nil {
		return errs
	}
	if _, err := time.LoadLocation(*r.TimeZone); err != nil {
		errs = append(errs, field.Invalid(path.Child("timeZone"), *r.TimeZone, "is not known: use a name such as Europe/Berlin"))
	}
	return errs
}

// autoscalerBounds checks what a rule sets in an autoscaler.
func autoscalerBounds(r *autoscalingv1alpha1.CronFederatedHPARule, path *field.Path) field.ErrorList {
	least, most := r.TargetMinReplicas, r.TargetMaxReplicas
	if least == nil && most == nil {
		return field.ErrorList{field.Required(path, "targetMinReplicas or targetMaxReplicas must be set")}
	}
	var errs field.ErrorList
	if least != nil && *least <= 0 {
		errs = append(errs, field.Invalid(path.Child("targetMinReplicas"), *least, "must be greater than 0"))
	}
	if most != nil && *most <= 0 {
		errs = append(errs, field.Invalid(path.Child("targetMaxReplicas"), *most, "must be greater than 0"))
	}
	if least != nil && most != nil && *least > *most {
		errs = append(errs, field.Invalid(path.Child("targetMinReplicas"), *least, "must be less than or equal to targetMaxReplicas"))
	}
	return errs
}

func replicaTarget(r *autoscalingv1alpha1.CronFederatedHPARule, path *field.Path) field.ErrorList {
	path = path.Child("targetReplicas")
	switch {
	case r.TargetReplicas == nil:
		return field.ErrorList{field.Required(path, "must be set unless a FederatedHPA is scaled")}
	case *r.TargetReplicas < 0:
		return field.ErrorList{field.Invalid(path, *r.TargetReplicas, "must be greater than or equal to 0")}
	}
	return nil
}

func history(limit *int32, least int32, path *field.Path) field.ErrorList {
	if limit != nil && (*limit < least || *limit > maxHistory) {
		return field.ErrorList{field.Invalid(path, *limit, fmt.Sprintf("must be between %d and %d", least, maxHistory))}
	}
	return nil
}
