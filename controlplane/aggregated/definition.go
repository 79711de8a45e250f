package aggregated

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

// A definition has the names, table columns and schemas from the CustomResourceDefinition of
// a kind that is served with its Go type.
type definition struct {
	crd    *apiextensionsv1.CustomResourceDefinition
	tables map[schema.GroupVersion]rest.TableConvertor
	// spec and status check what the Go types do not; nil if there is nothing to check.
	spec, status validation.SchemaValidator
}

func newDefinition(crd *apiextensionsv1.CustomResourceDefinition) (*definition, error) {
	d := &definition{crd: crd, tables: map[schema.GroupVersion]rest.TableConvertor{}}
	for _, version := range crd.Spec.Versions {
		if err := d.add(version); err != nil {
			return nil, fmt.Errorf("definition %s, version %s: %w", crd.Name, version.Name, err)
		}
	}
	return d, nil
}

func (d *definition) add(version apiextensionsv1.CustomResourceDefinitionVersion) error {
	convertor, err := tableconvertor.New(version.AdditionalPrinterColumns)
	if err != nil {
		return fmt.Errorf("columns: %w", err)
	}
	d.tables[schema.GroupVersion{Group: d.crd.Spec.Group, Version: version.Name}] = convertor
	if !version.Storage {
		return nil // objects are checked in the stored version
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	if d.spec, err = validator(props.Properties["spec"]); err != nil {
		return fmt.Errorf("schema of spec: %w", err)
	}
	if d.status, err = validator(props.Properties["status"]); err != nil {
		return fmt.Errorf("schema of status: %w", err)
	}
	return nil
}

// validator returns a validator for a schema; nil if the schema requires nothing beyond the
// Go type.
func validator(props apiextensions.JSONSchemaProps) (validation.SchemaValidator, error) {
	if !restricts(&props) {
		return nil, nil
	}
	v, _, err := validation.NewSchemaValidator(&props)
	return v, err
}

// restricts reports whether a schema requires more than types, at any depth.
func restricts(s *apiextensions.JSONSchemaProps) bool {
	if len(s.Required) > 0 || len(s.Enum) > 0 || len(s.XValidations) > 0 || s.Pattern != "" ||
		s.Minimum != nil || s.Maximum != nil || s.MinLength != nil || s.MaxLength != nil ||
		s.MinItems != nil || s.MaxItems != nil || s.MinProperties != nil || s.MaxProperties != nil ||
		len(s.AllOf) > 0 || len(s.OneOf) > 0 || len(s.AnyOf) > 0 || s.Not != nil {
		return true
	}
	if s.Items != nil && s.Items.Schema != nil && restricts(s.Items.Schema) {
		return true
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil && restricts(s.AdditionalProperties.Schema) {
		return true
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(s.Properties)), func(p apiextensions.JSONSchemaProps) bool { return restricts(&p) })
}

func (d *definition) names() names {
	group, called := d.crd.Spec.Group, d.crd.Spec.Names
	return names{
		resource:   schema.GroupResource{Group: group, Resource: called.Plural},
		singular:   schema.GroupResource{Group: group, Resource: called.Singular},
		shortNames: called.ShortNames,
		categories: called.Categories,
	}
}

func (d *definition) namespaced() bool { return d.crd.Spec.Scope == apiextensionsv1.NamespaceScoped }

// versions returns the versions that are stored or served, the stored one first.
func (d *definition) versions() []schema.GroupVersion {
	var out []schema.GroupVersion
	for _, version := range d.crd.Spec.Versions {
		gv := schema.GroupVersion{Group: d.crd.Spec.Group, Version: version.Name}
		switch {
		case version.Storage:
			out = slices.Insert(out, 0, gv)
		case version.Served:
			out = append(out, gv)
		}
	}
	return out
}

// checkSpec checks a spec, given as a pointer, against the schema. A required string must not
// be empty: a Go type cannot distinguish an empty string from a missing one.
func (d *definition) checkSpec(spec any) field.ErrorList {
	return check(field.NewPath("spec"), spec, d.spec, func(value any) bool { return value == nil || value == "" })
}

// checkStatus checks a status, given as a pointer, against the schema. Strings may be empty,
// as messages are.
func (d *definition) checkStatus(status any) field.ErrorList {
	return check(field.NewPath("status"), status, d.status, func(value any) bool { return value == nil })
}

// check validates a value, without its unset fields, against a schema.
func check(path *field.Path, value any, v validation.SchemaValidator, unset func(any) bool) field.ErrorList {
	if v == nil {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(value)
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	drop(content, unset)
	return validation.ValidateCustomResource(path, content, v)
}

// drop removes the fields that are unset, at any depth.
func drop(value any, unset func(any) bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			if unset(item) {
				delete(v, key)
				continue
			}
			drop(item, unset)
		}
	case []any:
		for _, item := range v {
			drop(item, unset)
		}
	}
}
