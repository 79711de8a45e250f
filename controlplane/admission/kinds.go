package admission

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// A kind is what admission does to the objects of one kind. Fields that are zero
// do nothing.
type kind struct {
	// identity is the object's permanent id.
	identity validate.Identity
	// finalizer is on the object until it is being deleted.
	finalizer string
	// version is the version of the kind that the functions below understand;
	// objects in another one are not shown to them.
	version string
	// complete fills in an object, which has its id by then.
	complete func(obj *unstructured.Unstructured) error
	// check lists what is wrong with an object, and what is merely unwise; old is
	// nil on creation.
	check func(obj, old *unstructured.Unstructured) (field.ErrorList, []string, error)
	// selects lists the kinds of templates that the object speaks of.
	selects func(obj *unstructured.Unstructured) ([]api, error)
}

// An api is a kind of templates that a field names.
type api struct {
	path             *field.Path
	apiVersion, kind string
}

// kinds are all that Plugin knows.
var kinds = map[schema.GroupResource]kind{
	{Group: policyv1alpha1.GroupName, Resource: "propagationpolicies"}: {
		identity:  validate.Identity{Label: policyv1alpha1.PropagationPolicyPermanentIDLabel, Own: true},
		finalizer: policyv1alpha1.PropagationPolicyControllerFinalizer, version: "v1alpha1",
		complete: completing(func(p *policyv1alpha1.PropagationPolicy) { validate.DefaultPolicy(p, false, nil) }),
		check:    checkPolicy[policyv1alpha1.PropagationPolicy],
		selects: selecting(func(p *policyv1alpha1.PropagationPolicy) []policyv1alpha1.ResourceSelector {
			return p.Spec.ResourceSelectors
		}),
	},
	{Group: policyv1alpha1.GroupName, Resource: "clusterpropagationpolicies"}: {
		identity:  validate.Identity{Label: policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel, Own: true},
		finalizer: policyv1alpha1.ClusterPropagationPolicyControllerFinalizer, version: "v1alpha1",
		complete: completing(func(p *policyv1alpha1.ClusterPropagationPolicy) { validate.DefaultPolicy(p, false, nil) }),
		check:    checkPolicy[policyv1alpha1.ClusterPropagationPolicy],
		selects: selecting(func(p *policyv1alpha1.ClusterPropagationPolicy) []policyv1alpha1.ResourceSelector {
			return p.Spec.ResourceSelectors
		}),
	},
	{Group: policyv1alpha1.GroupName, Resource: "overridepolicies"}: {
		version:  "v1alpha1",
		complete: completing(func(o *policyv1alpha1.OverridePolicy) { validate.DefaultOverride(o) }),
		check:    checking(func(o *policyv1alpha1.OverridePolicy) (field.ErrorList, []string) { return validate.Override(o) }),
		selects: selecting(func(o *policyv1alpha1.OverridePolicy) []policyv1alpha1.ResourceSelector {
			return o.Spec.ResourceSelectors
		}),
	},
	{Group: policyv1alpha1.GroupName, Resource: "clusteroverridepolicies"}: {
		version:  "v1alpha1",
		complete: completing(func(o *policyv1alpha1.ClusterOverridePolicy) { validate.DefaultOverride(o) }),
		check:    checking(func(o *policyv1alpha1.ClusterOverridePolicy) (field.ErrorList, []string) { return validate.Override(o) }),
		selects: selecting(func(o *policyv1alpha1.ClusterOverridePolicy) []policyv1alpha1.ResourceSelector {
			return o.Spec.ResourceSelectors
		}),
	},
}

// policyOf is a pointer to a policy of Go type T.
type policyOf[T any] interface {
	*T
	policyv1alpha1.Policy
}

func checkPolicy[T any, P policyOf[T]](obj, old *unstructured.Unstructured) (field.ErrorList, []string, error) {
	policy, err := decode[T](obj)
	if err != nil {
		return nil, nil, err
	}
	var before policyv1alpha1.Policy
	if old != nil {
		value, err := decode[T](old)
		if err != nil {
			return nil, nil, err
		}
		before = P(value)
	}
	errs, warnings := validate.Policy(P(policy), before)
	return errs, warnings, nil
}

// completing turns a function on a Go type into a kind's complete. What the
// function does not change stays to the letter. An object that does not fit the
// type is left to the schema, which comes next and names the field.
func completing[T any](complete func(*T)) func(*unstructured.Unstructured) error {
	return func(obj *unstructured.Unstructured) error {
		value, err := decode[T](obj)
		if err != nil {
			return nil //nolint:nilerr // as said
		}
		before, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		complete(value)
		after, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		return patch(obj, before, after)
	}
}

// patch brings into obj what differs between two forms of it.
func patch(obj *unstructured.Unstructured, before, after []byte) error {
	difference, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return fmt.Errorf("compare with defaults: %w", err)
	}
	if string(difference) == "{}" {
		return nil
	}
	content, err := obj.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if content, err = jsonpatch.MergePatch(content, difference); err != nil {
		return fmt.Errorf("set defaults: %w", err)
	}
	return obj.UnmarshalJSON(content)
}

// checking turns a function on a Go type into a kind's check.
func checking[T any](check func(*T) (field.ErrorList, []string)) func(obj, old *unstructured.Unstructured) (field.ErrorList, []string, error) {
	return func(obj, _ *unstructured.Unstructured) (field.ErrorList, []string, error) {
		value, err := decode[T](obj)
		if err != nil {
			return nil, nil, err
		}
		errs, warnings := check(value)
		return errs, warnings, nil
	}
}

// selecting turns a function on a Go type into a kind's selects.
func selecting[T any](list func(*T) []policyv1alpha1.ResourceSelector) func(*unstructured.Unstructured) ([]api, error) {
	return func(obj *unstructured.Unstructured) ([]api, error) {
		value, err := decode[T](obj)
		if err != nil {
			return nil, err
		}
		var out []api
		for i, s := range list(value) {
			out = append(out, api{path: field.NewPath("spec", "resourceSelectors").Index(i), apiVersion: s.APIVersion, kind: s.Kind})
		}
		return out, nil
	}
}

func decode[T any](obj *unstructured.Unstructured) (*T, error) {
	value := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, value); err != nil {
		return nil, fmt.Errorf("read %s: %w", obj.GetKind(), err)
	}
	return value, nil
}
