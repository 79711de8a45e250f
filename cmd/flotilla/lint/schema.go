package lint

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-io/flotilla/api/crds"
)

// A schemas has the schemas of the control plane's own kinds.
type schemas struct {
	definitions map[schema.GroupVersionKind]definition
	groups      map[string]bool
	compiled    map[schema.GroupVersionKind]*compiled
}

type definition struct {
	schema     *apiextensionsv1.JSONSchemaProps
	namespaced bool
}

// compiled is a schema that is ready for use.
type compiled struct {
	namespaced bool
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
}

func newSchemas() (*schemas, error) {
	all, err := crds.All()
	if err != nil {
		return nil, err
	}
	s := &schemas{definitions: map[schema.GroupVersionKind]definition{}, groups: map[string]bool{}, compiled: map[schema.GroupVersionKind]*compiled{}}
	for _, crd := range all {
		s.groups[crd.Spec.Group] = true
		for i := range crd.Spec.Versions {
			v := &crd.Spec.Versions[i]
			if v.Served && v.Schema != nil {
				s.definitions[schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}] = definition{
					schema: v.Schema.OpenAPIV3Schema, namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
				}
			}
		}
	}
	return s, nil
}

// of returns the schema of a kind, nil if the kind is not the control plane's.
func (s *schemas) of(gvk schema.GroupVersionKind) (*compiled, error) {
	if c := s.compiled[gvk]; c != nil {
		return c, nil
	}
	d, known := s.definitions[gvk]
	if !known {
		return nil, nil
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(d.schema, &props, nil); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", gvk, err)
	}
	structural, err := structuralschema.NewStructural(&props)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", gvk, err)
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", gvk, err)
	}
	c := &compiled{namespaced: d.namespaced, structural: structural, validator: validator}
	s.compiled[gvk] = c
	return c, nil
}

// unknown returns the fields that the kind does not have.
func (c *compiled) unknown(fields map[string]any) []string {
	return pruning.PruneWithOptions(runtime.DeepCopyJSON(fields), c.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// complete sets the schema's defaults and returns the errors of the schema.
func (c *compiled) complete(fields map[string]any) field.ErrorList {
	defaulting.PruneNonNullableNullsWithoutDefaults(fields, c.structural)
	defaulting.Default(fields, c.structural)
	return validation.ValidateCustomResource(nil, fields, c.validator)
}
