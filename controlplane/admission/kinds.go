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
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// customKinds returns the kinds that the plugin checks. Those that are served with their Go
// types are not among them: their own strategies check them.
func customKinds() map[schema.GroupResource]validate.Kind {
	out := map[schema.GroupResource]validate.Kind{}
	for _, k := range validate.Kinds() {
		if k.Group != workv1alpha2.GroupName {
			out[schema.GroupResource{Group: k.Group, Resource: k.Resource}] = k
		}
	}
	return out
}

// understands reports whether an object has the one version that the kind's functions know.
func understands(k validate.Kind, obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().Version == k.Version
}

// complete sets the defaults of an object. Fields without a default stay unchanged. An
// object that does not fit the type is left unchanged: the schema check, which comes next,
// names the field.
func complete(k validate.Kind, obj *unstructured.Unstructured) error {
	value, err := decode(k, obj)
	if err != nil {
		return nil //nolint:nilerr // see the doc comment
	}
	before, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	k.Default(value)
	after, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	return patch(obj, before, after)
}

// patch applies to obj the difference between two JSON forms of it.
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

// check returns errors and warnings about an object; old is nil on creation. A
// ResourceInterpreterCustomization is checked without its old form: an unreadable one must
// not prevent its replacement.
func check(k validate.Kind, obj, old *unstructured.Unstructured, facts validate.Facts) (field.ErrorList, []string, validate.Object, error) {
	value, err := decode(k, obj)
	if err != nil {
		return nil, nil, nil, err
	}
	var before validate.Object
	if old != nil && k.Resource != "resourceinterpretercustomizations" {
		if before, err = decode(k, old); err != nil {
			return nil, nil, nil, err
		}
	}
	errs, warnings := k.Check(value, before, facts)
	return errs, warnings, value, nil
}

func decode(k validate.Kind, obj *unstructured.Unstructured) (validate.Object, error) {
	value := k.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, value); err != nil {
		return nil, fmt.Errorf("read %s: %w", obj.GetKind(), err)
	}
	return value, nil
}

// selectorsOf returns the resource selectors of a policy or an override.
func selectorsOf(obj validate.Object) []policyv1alpha1.ResourceSelector {
	switch o := obj.(type) {
	case policyv1alpha1.Policy:
		return o.PropagationSpec().ResourceSelectors
	case policyv1alpha1.Override:
		return o.OverrideSpec().ResourceSelectors
	}
	return nil
}
