package scaling

import (
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	autoscalingv1alpha1 "github.com/flotilla-io/flotilla/api/autoscaling/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/validate/syntax"
)

// Defaults of autoscalers, and bounds of their behavior in seconds. They are
// Kubernetes'.
const (
	defaultUtilization = 80
	defaultPeriod      = 15
	defaultPods        = 4
	defaultPercent     = 100
	maxStabilization   = 3600
	maxPeriod          = 1800
)

// DefaultAutoscaler fills in a, as Kubernetes does with its autoscaler.
func DefaultAutoscaler(a *autoscalingv1alpha1.FederatedHPA) {
	spec := &a.Spec
	if spec.MinReplicas == nil {
		spec.MinReplicas = ptr.To[int32](1)
	}
	if len(spec.Metrics) == 0 {
		spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name:   corev1.ResourceCPU,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](defaultUtilization)},
		}}}
	}
	if spec.Behavior == nil {
		return
	}
	percent := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: defaultPercent, PeriodSeconds: defaultPeriod}
	pods := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: defaultPods, PeriodSeconds: defaultPeriod}
	spec.Behavior.ScaleUp = defaultScaling(spec.Behavior.ScaleUp, ptr.To[int32](0), pods, percent)
	spec.Behavior.ScaleDown = defaultScaling(spec.Behavior.ScaleDown, nil, percent)
}

func defaultScaling(r *autoscalingv2.HPAScalingRules, window *int32, policies ...autoscalingv2.HPAScalingPolicy) *autoscalingv2.HPAScalingRules {
	if r == nil {
		r = &autoscalingv2.HPAScalingRules{}
	}
	if r.StabilizationWindowSeconds == nil {
		r.StabilizationWindowSeconds = window
	}
	if r.SelectPolicy == nil {
		r.SelectPolicy = ptr.To(autoscalingv2.MaxChangePolicySelect)
	}
	if r.Policies == nil {
		r.Policies = policies
	}
	return r
}

// Autoscaler says what is wrong with a, as Kubernetes does with its autoscaler.
func Autoscaler(a *autoscalingv1alpha1.FederatedHPA) (field.ErrorList, []string) {
	spec, path := &a.Spec, field.NewPath("spec")
	errs := scaleTarget(&spec.ScaleTargetRef, path.Child("scaleTargetRef"))
	least := ptr.Deref(spec.MinReplicas, 1)
	if least < 1 {
		errs = append(errs, field.Invalid(path.Child("minReplicas"), least, "must be greater than or equal to 1"))
	}
	switch {
	case spec.MaxReplicas < 1:
		errs = append(errs, field.Invalid(path.Child("maxReplicas"), spec.MaxReplicas, "must be greater than 0"))
	case spec.MaxReplicas < least:
		errs = append(errs, field.Invalid(path.Child("maxReplicas"), spec.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	for i := range spec.Metrics {
		errs = append(errs, metric(&spec.Metrics[i], path.Child("metrics").Index(i))...)
	}
	if b := spec.Behavior; b != nil {
		errs = append(errs, scaling(b.ScaleUp, path.Child("behavior", "scaleUp"))...)
		errs = append(errs, scaling(b.ScaleDown, path.Child("behavior", "scaleDown"))...)
	}
	return errs, nil
}

func scaleTarget(ref *autoscalingv2.CrossVersionObjectReference, path *field.Path) field.ErrorList {
	errs := syntax.Segment(ref.Kind, path.Child("kind"))
	errs = append(errs, syntax.Segment(ref.Name, path.Child("name"))...)
	if ref.APIVersion != "" {
		errs = append(errs, syntax.APIVersion(ref.APIVersion, path.Child("apiVersion"))...)
	}
	return errs
}

// metricTypes are the sources that a metric may come from.
var metricTypes = []autoscalingv2.MetricSourceType{
	autoscalingv2.ObjectMetricSourceType, autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType,
	autoscalingv2.ExternalMetricSourceType, autoscalingv2.ContainerResourceMetricSourceType,
}

func metric(m *autoscalingv2.MetricSpec, path *field.Path) field.ErrorList {
	if !slices.Contains(metricTypes, m.Type) {
		return field.ErrorList{field.NotSupported(path.Child("type"), m.Type, metricTypes)}
	}
	sources := []struct {
		kind  autoscalingv2.MetricSourceType
		field string
		given bool
		check func(*field.Path) field.ErrorList
	}{
		{autoscalingv2.ObjectMetricSourceType, "object", m.Object != nil, func(p *field.Path) field.ErrorList { return objectMetric(m.Object, p) }},
		{autoscalingv2.PodsMetricSourceType, "pods", m.Pods != nil, func(p *field.Path) field.ErrorList { return podsMetric(m.Pods, p) }},
		{autoscalingv2.ResourceMetricSourceType, "resource", m.Resource != nil, func(p *field.Path) field.ErrorList { return resourceMetric(m.Resource.Name, &m.Resource.Target, p) }},
		{autoscalingv2.ExternalMetricSourceType, "external", m.External != nil, func(p *field.Path) field.ErrorList { return externalMetric(m.External, p) }},
		{autoscalingv2.ContainerResourceMetricSourceType, "containerResource", m.ContainerResource != nil, func(p *field.Path) field.ErrorList {
			errs := syntax.Segment(m.ContainerResource.Container, p.Child("container"))
			return append(errs, resourceMetric(m.ContainerResource.Name, &m.ContainerResource.Target, p)...)
		}},
	}
	var errs field.ErrorList
	for _, s := range sources {
		switch at := path.Child(s.field); {
		case s.kind == m.Type && !s.given:
			errs = append(errs, field.Required(at, fmt.Sprintf("must populate the field for the type %s", m.Type)))
		case s.kind == m.Type:
			errs = append(errs, s.check(at)...)
		case s.given:
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("must populate only the field for the type %s", m.Type)))
		}
	}
	return errs
}

func objectMetric(m *autoscalingv2.ObjectMetricSource, path *field.Path) field.ErrorList {
	errs := scaleTarget(&m.DescribedObject, path.Child("describedObject"))
	errs = append(errs, metricName(&m.Metric, path.Child("metric"))...)
	errs = append(errs, metricTarget(&m.Target, path.Child("target"))...)
	return append(errs, amount(&m.Target, path.Child("target"))...)
}

func externalMetric(m *autoscalingv2.ExternalMetricSource, path *field.Path) field.ErrorList {
	errs := metricName(&m.Metric, path.Child("metric"))
	errs = append(errs, metricTarget(&m.Target, path.Child("target"))...)
	if m.Target.Value != nil && m.Target.AverageValue != nil {
		errs = append(errs, field.Forbidden(path.Child("target", "value"), "may not set both value and averageValue"))
	}
	return append(errs, amount(&m.Target, path.Child("target"))...)
}

// amount wants a target that is a number.
func amount(t *autoscalingv2.MetricTarget, path *field.Path) field.ErrorList {
	if t.Value == nil && t.AverageValue == nil {
		return field.ErrorList{field.Required(path.Child("averageValue"), "must set either value or averageValue")}
	}
	return nil
}

func podsMetric(m *autoscalingv2.PodsMetricSource, path *field.Path) field.ErrorList {
	errs := metricName(&m.Metric, path.Child("metric"))
	errs = append(errs, metricTarget(&m.Target, path.Child("target"))...)
	if m.Target.AverageValue == nil || m.Target.AverageValue.Sign() <= 0 {
		errs = append(errs, field.Required(path.Child("target", "averageValue"), "must specify a positive target averageValue"))
	}
	return errs
}

func resourceMetric(name corev1.ResourceName, t *autoscalingv2.MetricTarget, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		errs = append(errs, field.Required(path.Child("name"), "must specify a resource name"))
	}
	errs = append(errs, metricTarget(t, path.Child("target"))...)
	switch {
	case t.AverageUtilization == nil && t.AverageValue == nil:
		errs = append(errs, field.Required(path.Child("target", "averageUtilization"), "must set either a target raw value or a target utilization"))
	case t.AverageUtilization != nil && t.AverageValue != nil:
		errs = append(errs, field.Forbidden(path.Child("target", "averageValue"), "may not set both a target raw value and a target utilization"))
	}
	return errs
}

func metricName(m *autoscalingv2.MetricIdentifier, path *field.Path) field.ErrorList {
	return append(syntax.Segment(m.Name, path.Child("name")), syntax.LabelSelector(m.Selector, path.Child("selector"))...)
}

// targetTypes are the ways in which a metric's target is given.
var targetTypes = []autoscalingv2.MetricTargetType{autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType}

func metricTarget(t *autoscalingv2.MetricTarget, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !slices.Contains(targetTypes, t.Type) {
		errs = append(errs, field.NotSupported(path.Child("type"), t.Type, targetTypes))
	}
	if t.Value != nil && t.Value.Sign() <= 0 {
		errs = append(errs, field.Invalid(path.Child("value"), t.Value.String(), "must be positive"))
	}
	if t.AverageValue != nil && t.AverageValue.Sign() <= 0 {
		errs = append(errs, field.Invalid(path.Child("averageValue"), t.AverageValue.String(), "must be positive"))
	}
	if t.AverageUtilization != nil && *t.AverageUtilization < 1 {
		errs = append(errs, field.Invalid(path.Child("averageUtilization"), *t.AverageUtilization, "must be greater than 0"))
	}
	return errs
}

// Of rules of scaling.
var (
	selectPolicies = []autoscalingv2.ScalingPolicySelect{autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect}
	policyTypes    = []autoscalingv2.HPAScalingPolicyType{autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy}
)

func scaling(r *autoscalingv2.HPAScalingRules, path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if w := r.StabilizationWindowSeconds; w != nil && (*w < 0 || *w > maxStabilization) {
		errs = append(errs, field.Invalid(path.Child("stabilizationWindowSeconds"), *w, fmt.Sprintf("must be between 0 and %d", maxStabilization)))
	}
	if r.SelectPolicy != nil && !slices.Contains(selectPolicies, *r.SelectPolicy) {
		errs = append(errs, field.NotSupported(path.Child("selectPolicy"), *r.SelectPolicy, selectPolicies))
	}
	if r.Tolerance != nil && r.Tolerance.Sign() < 0 {
		errs = append(errs, field.Invalid(path.Child("tolerance"), r.Tolerance.String(), "must be greater than or equal to 0"))
	}
	if len(r.Policies) == 0 {
		errs = append(errs, field.Required(path.Child("policies"), "must specify at least one policy"))
	}
	for i, p := range r.Policies {
		at := path.Child("policies").Index(i)
		if !slices.Contains(policyTypes, p.Type) {
			errs = append(errs, field.NotSupported(at.Child("type"), p.Type, policyTypes))
		}
		if p.Value <= 0 {
			errs = append(errs, field.Invalid(at.Child("value"), p.Value, "must be greater than zero"))
		}
		if p.PeriodSeconds <= 0 || p.PeriodSeconds > maxPeriod {
			errs = append(errs, field.Invalid(at.Child("periodSeconds"), p.PeriodSeconds, fmt.Sprintf("must be between 1 and %d", maxPeriod)))
		}
	}
	return errs
}
