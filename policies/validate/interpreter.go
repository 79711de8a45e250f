package validate

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
	"github.com/flotilla-io/flotilla/policies/validate/syntax"
)

// A script of a customization, and the function that it defines.
type script struct {
	field, function string
	given           *configv1alpha1.CustomizationScript
}

func scripts(r *configv1alpha1.CustomizationRules) []script {
	return []script{
		{"retention", "Retain", r.Retention},
		{"replicaResource", "GetReplicas", r.ReplicaResource},
		{"componentResource", "GetComponents", r.ComponentResource},
		{"replicaRevision", "ReviseReplica", r.ReplicaRevision},
		{"statusReflection", "ReflectStatus", r.StatusReflection},
		{"statusAggregation", "AggregateStatus", r.StatusAggregation},
		{"healthInterpretation", "InterpretHealth", r.HealthInterpretation},
		{"dependencyInterpretation", "GetDependencies", r.DependencyInterpretation},
	}
}

// Customization says what is wrong with c. others are all customizations there
// are; c itself may be among them. Scripts are compiled, but not run.
func Customization(c *configv1alpha1.ResourceInterpreterCustomization, others []configv1alpha1.ResourceInterpreterCustomization) (field.ErrorList, []string) {
	path := field.NewPath("spec")
	target := path.Child("target")
	var errs field.ErrorList
	var warnings []string
	if len(syntax.APIVersion(c.Spec.Target.APIVersion, target.Child("apiVersion"))) > 0 {
		warnings = append(warnings, syntax.Advise(target.Child("apiVersion"), "%q is no version of an API, so nothing is customized: name one, such as apps/v1", c.Spec.Target.APIVersion))
	}
	if c.Spec.Target.Kind == "" {
		warnings = append(warnings, syntax.Advise(target.Child("kind"), "is empty, so nothing is customized: name a kind"))
	}
	some := false
	for _, s := range scripts(&c.Spec.Customizations) {
		if s.given == nil {
			continue
		}
		some = true
		at := path.Child("customizations", s.field, "luaScript")
		switch err := lua.Check(s.given.LuaScript, s.function); {
		case errors.Is(err, lua.ErrUndefined):
			warnings = append(warnings, syntax.Advise(at, "does not define the function %s that is called: define it", s.function))
		case err != nil:
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, err.Error()))
		}
	}
	if !some {
		warnings = append(warnings, syntax.Advise(path.Child("customizations"), "is empty, so nothing is customized: add a script"))
	}
	return append(errs, conflicts(c, others, path.Child("customizations"))...), warnings
}

// united is the question that any number of scripts may answer for one kind: what any of
// them names goes along.
const united = "dependencyInterpretation"

// conflicts refuses a second script about one question of one kind.
func conflicts(c *configv1alpha1.ResourceInterpreterCustomization, others []configv1alpha1.ResourceInterpreterCustomization, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	mine := scripts(&c.Spec.Customizations)
	for i := range others {
		o := &others[i]
		if o.Name == c.Name || o.DeletionTimestamp != nil || o.Spec.Target != c.Spec.Target {
			continue
		}
		for n, s := range scripts(&o.Spec.Customizations) {
			if s.given != nil && mine[n].given != nil && s.field != united {
				errs = append(errs, field.Forbidden(path.Child(s.field),
					fmt.Sprintf("the ResourceInterpreterCustomization %s has a script for it, for the same %s of %s", o.Name, o.Spec.Target.Kind, o.Spec.Target.APIVersion)))
			}
		}
	}
	return errs
}

// interpreterVersion is the version of the questions that webhooks are asked.
const interpreterVersion = "v1alpha1"

// Bounds of how long a webhook may take to answer, in seconds.
const minTimeout, maxTimeout = 1, 30

// operations are all that a webhook may be asked.
var operations = []configv1alpha1.InterpreterOperation{
	configv1alpha1.InterpreterOperationAll, configv1alpha1.InterpreterOperationInterpretReplica,
	configv1alpha1.InterpreterOperationInterpretComponent, configv1alpha1.InterpreterOperationReviseReplica,
	configv1alpha1.InterpreterOperationInterpretStatus, configv1alpha1.InterpreterOperationPrune,
	configv1alpha1.InterpreterOperationRetain, configv1alpha1.InterpreterOperationAggregateStatus,
	configv1alpha1.InterpreterOperationInterpretHealth, configv1alpha1.InterpreterOperationInterpretDependency,
}

// Webhooks says what is wrong with c.
func Webhooks(c *configv1alpha1.ResourceInterpreterWebhookConfiguration) (field.ErrorList, []string) {
	var errs field.ErrorList
	var warnings []string
	names := map[string]bool{}
	for i := range c.Webhooks {
		w, at := &c.Webhooks[i], field.NewPath("webhooks").Index(i)
		for _, msg := range validation.IsFullyQualifiedName(at.Child("name"), w.Name) {
			errs = append(errs, msg)
		}
		if names[w.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), w.Name))
		}
		names[w.Name] = true
		if t := w.TimeoutSeconds; t != nil && (*t < minTimeout || *t > maxTimeout) {
			errs = append(errs, field.Invalid(at.Child("timeoutSeconds"), *t, fmt.Sprintf("must be between %d and %d seconds", minTimeout, maxTimeout)))
		}
		errs = append(errs, clientConfig(&w.ClientConfig, at.Child("clientConfig"))...)
		for j := range w.Rules {
			errs = append(errs, interpreterRule(&w.Rules[j], at.Child("rules").Index(j))...)
		}
		if len(w.Rules) == 0 {
			warnings = append(warnings, syntax.Advise(at.Child("rules"), "is empty, so the webhook is never asked: add a rule"))
		}
		errs = append(errs, contextVersions(w.InterpreterContextVersions, at.Child("interpreterContextVersions"))...)
	}
	return errs, warnings
}

func clientConfig(c *admissionregistrationv1.WebhookClientConfig, path *field.Path) field.ErrorList {
	if (c.URL == nil) == (c.Service == nil) {
		return field.ErrorList{field.Required(path, "exactly one of url and service is required")}
	}
	if c.URL != nil {
		return hookURL(*c.URL, path.Child("url"))
	}
	var errs field.ErrorList
	at := path.Child("service")
	if c.Service.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	if c.Service.Namespace == "" {
		errs = append(errs, field.Required(at.Child("namespace"), ""))
	}
	if p := c.Service.Path; p != nil && !strings.HasPrefix(*p, "/") {
		errs = append(errs, field.Invalid(at.Child("path"), *p, "must start with /"))
	}
	if p := c.Service.Port; p != nil {
		errs = append(errs, syntax.Port(*p, at.Child("port"))...)
	}
	return errs
}

func hookURL(text string, path *field.Path) field.ErrorList {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, "", "must be a URL")}
	case u.Scheme != "https":
		return field.ErrorList{field.Invalid(path, u.Scheme, "must be an https URL")}
	case u.Host == "":
		return field.ErrorList{field.Invalid(path, u.Scheme, "host must be provided")}
	case u.User != nil:
		return field.ErrorList{field.Invalid(path, u.Host, "user information is not permitted")}
	case u.Fragment != "", u.RawQuery != "":
		return field.ErrorList{field.Invalid(path, u.Host, "fragments and query parameters are not permitted")}
	}
	return nil
}

func interpreterRule(r *configv1alpha1.RuleWithOperations, path *field.Path) field.ErrorList {
	errs := alone(r.Operations, path.Child("operations"))
	for i, op := range r.Operations {
		if !slices.Contains(operations, op) {
			errs = append(errs, field.NotSupported(path.Child("operations").Index(i), op, operations))
		}
	}
	errs = append(errs, alone(r.APIGroups, path.Child("apiGroups"))...)
	errs = append(errs, alone(r.APIVersions, path.Child("apiVersions"))...)
	for i, v := range r.APIVersions {
		if v == "" {
			errs = append(errs, field.Required(path.Child("apiVersions").Index(i), ""))
		}
	}
	errs = append(errs, alone(r.Kinds, path.Child("kinds"))...)
	for i, k := range r.Kinds {
		if k == "" {
			errs = append(errs, field.Required(path.Child("kinds").Index(i), ""))
		}
	}
	return errs
}

// alone checks a list of which "*" means all.
func alone[T ~string](list []T, path *field.Path) field.ErrorList {
	switch {
	case len(list) == 0:
		return field.ErrorList{field.Required(path, "")}
	case len(list) > 1 && slices.Contains(list, "*"):
		return field.ErrorList{field.Invalid(path, list, `if "*" is present, it must be alone`)}
	}
	return nil
}

func contextVersions(versions []string, path *field.Path) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "must contain "+interpreterVersion)}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, v := range versions {
		for _, msg := range validation.IsDNS1035Label(v) {
			errs = append(errs, field.Invalid(path.Index(i), v, msg))
		}
		if seen[v] {
			errs = append(errs, field.Duplicate(path.Index(i), v))
		}
		seen[v] = true
	}
	if !seen[interpreterVersion] {
		errs = append(errs, field.Invalid(path, versions, "must contain "+interpreterVersion))
	}
	return errs
}
