package validate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/validate/syntax"
)

// Policy says what is wrong with p. old is what p was, nil on creation.
func Policy(p, old policyv1alpha1.Policy) (field.ErrorList, []string) {
	if errs := tooMany(listsOf(p), listsOf(old)); len(errs) > 0 {
		return errs, nil
	}
	spec, path := p.PropagationSpec(), field.NewPath("spec")
	errs := identityOf(p, old)
	errs = append(errs, selectors(spec.ResourceSelectors, p.GetNamespace(), path.Child("resourceSelectors"))...)
	if spec.Preemption == policyv1alpha1.PreemptAlways {
		for i := range spec.ResourceSelectors {
			if spec.ResourceSelectors[i].Name == "" {
				errs = append(errs, field.Required(path.Child("resourceSelectors").Index(i).Child("name"),
					"name cannot be empty if preemption is Always"))
			}
		}
	}
	errs = append(errs, placement(&spec.Placement, path.Child("placement"))...)
	errs = append(errs, moving(spec, path.Child("failover"))...)
	errs = append(errs, suspension(spec.Suspension, path.Child("suspension"))...)
	errs = append(errs, openings(p, old)...)
	return errs, policyAdvice(p)
}

// openings checks which namespaces a policy opens, unless it did so before.
func openings(p, old policyv1alpha1.Policy) field.ErrorList {
	text := p.GetAnnotations()[dependency.NamespacesAnnotation]
	if p.GetNamespace() != "" || old != nil && old.GetAnnotations()[dependency.NamespacesAnnotation] == text {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(dependency.NamespacesAnnotation)
	named := dependency.Namespaces(p)
	var errs field.ErrorList
	for _, name := range named {
		switch {
		case name == dependency.EveryNamespace && len(named) > 1:
			errs = append(errs, field.Invalid(path, text, "* is every namespace: name it alone, or leave it out"))
		case name != dependency.EveryNamespace && len(validation.IsDNS1123Label(name)) > 0:
			errs = append(errs, field.Invalid(path, text, fmt.Sprintf("%q is not the name of a namespace: there are names, separated by commas, or * alone", name)))
		}
	}
	return errs
}

// identityOf checks what makes a policy the same one over its life.
func identityOf(p, old policyv1alpha1.Policy) field.ErrorList {
	var errs field.ErrorList
	label, _ := policyKeys(p)
	id, path := p.GetLabels()[label], field.NewPath("metadata", "labels").Key(label)
	if id == "" {
		errs = append(errs, field.Required(path, "label "+label+" not set, the policy should have it all the time"))
	}
	if old == nil {
		return errs
	}
	if was := old.GetLabels()[label]; id != "" && was != "" && id != was {
		errs = append(errs, field.Invalid(path, id, "label "+label+" is immutable"))
	}
	if name := p.PropagationSpec().SchedulerName; name != old.PropagationSpec().SchedulerName {
		errs = append(errs, field.Invalid(field.NewPath("spec", "schedulerName"), name, "the schedulerName should not be updated"))
	}
	return errs
}

func moving(spec *policyv1alpha1.PropagationSpec, path *field.Path) field.ErrorList {
	if spec.Failover == nil {
		return nil
	}
	var errs field.ErrorList
	if c := spec.Failover.Cluster; c != nil {
		errs = append(errs, preservation(c.StatePreservation, path.Child("cluster", "statePreservation"))...)
	}
	app := spec.Failover.Application
	if app == nil {
		return errs
	}
	path = path.Child("application")
	if !spec.PropagateDeps {
		errs = append(errs, field.Invalid(field.NewPath("spec", "propagateDeps"), false,
			"application failover is set, propagateDeps must be true"))
	}
	if s := app.DecisionConditions.TolerationSeconds; s != nil && *s < 0 {
		errs = append(errs, field.Invalid(path.Child("decisionConditions", "tolerationSeconds"), *s,
			"must be greater than or equal to 0"))
	}
	errs = append(errs, gracePeriod(app, path.Child("gracePeriodSeconds"))...)
	return append(errs, preservation(app.StatePreservation, path.Child("statePreservation"))...)
}

func gracePeriod(app *policyv1alpha1.ApplicationFailoverBehavior, path *field.Path) field.ErrorList {
	graceful := app.PurgeMode == policyv1alpha1.PurgeModeGracefully
	switch s := app.GracePeriodSeconds; {
	case graceful && s == nil:
		return field.ErrorList{field.Required(path, "should not be empty when purgeMode is Gracefully")}
	case s != nil && !graceful:
		return field.ErrorList{field.Invalid(path, *s, "only takes effect when purgeMode is Gracefully")}
	case s != nil && *s <= 0:
		return field.ErrorList{field.Invalid(path, *s, "must be greater than 0")}
	}
	return nil
}

func preservation(s *policyv1alpha1.StatePreservation, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	if rules := path.Child("rules"); len(s.Rules) > mostStateRules {
		return field.ErrorList{field.TooMany(rules, len(s.Rules), mostStateRules)}
	}
	for i, rule := range s.Rules {
		at := path.Child("rules").Index(i)
		errs = append(errs, syntax.LabelName(rule.AliasLabelName, at.Child("aliasLabelName"))...)
		if reservedLabel(rule.AliasLabelName) {
			errs = append(errs, field.Invalid(at.Child("aliasLabelName"), rule.AliasLabelName, "labels of Kubernetes and of the control plane mean something to them: take one of your own"))
		}
		if err := failover.CheckPath(rule.JSONPath); err != nil {
			errs = append(errs, field.Invalid(at.Child("jsonPath"), excerpt.Message(rule.JSONPath, 80), err.Error()))
		}
	}
	return errs
}

// mostStateRules is how many values may go along.
const mostStateRules = 16

// reservedLabel reports whether a label means something to Kubernetes or to the control plane.
func reservedLabel(name string) bool {
	domain, _, prefixed := strings.Cut(name, "/")
	if !prefixed {
		return false
	}
	return domain == "karmada.io" || slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "flotilla.io", "work.karmada.io", "policy.karmada.io"}, func(reserved string) bool {
		return domain == reserved || strings.HasSuffix(domain, "."+reserved)
	})
}

func suspension(s *policyv1alpha1.Suspension, path *field.Path) field.ErrorList {
	if s == nil || !ptr.Deref(s.Dispatching, false) || s.DispatchingOnClusters == nil {
		return nil
	}
	return field.ErrorList{field.Invalid(path, "dispatching and dispatchingOnClusters",
		"suspension dispatching is mutually exclusive with dispatchingOnClusters")}
}
