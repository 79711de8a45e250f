package admission

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	definitions "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// byDefinition maps kinds to resources as the server's own mapper does. That mapper is
// refreshed only twice a minute, so kinds that it does not know yet are mapped by their
// CustomResourceDefinitions.
type byDefinition struct {
	meta.RESTMapper
	// definitions is nil until the server sets it.
	definitions definitions.CustomResourceDefinitionLister
}

// RESTMapping returns the resource of a kind.
func (s *byDefinition) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := s.RESTMapper.RESTMapping(gk, versions...)
	if !meta.IsNoMatchError(err) || s.definitions == nil {
		return mapping, err
	}
	all, unread := s.definitions.List(labels.Everything())
	if unread != nil {
		return nil, err
	}
	for _, crd := range all {
		if crd.Spec.Group != gk.Group || crd.Spec.Names.Kind != gk.Kind || !stands(crd) {
			continue
		}
		if version := servedOf(crd, versions); version != "" {
			return mappingOf(crd, version), nil
		}
	}
	return nil, err
}

// installing is the reason of the condition Established right after the names were accepted.
const installing = "Installing"

// stands reports whether a definition is established or about to be: it has no such
// condition yet, or its names were just accepted.
func stands(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue || c.Reason == installing
		}
	}
	return true
}

// servedOf returns the first of versions that a definition serves. If versions is empty, it
// returns the first served version. It returns "" if there is none.
func servedOf(crd *apiextensionsv1.CustomResourceDefinition, versions []string) string {
	serves := map[string]bool{}
	first := ""
	for _, v := range crd.Spec.Versions {
		if serves[v.Name] = v.Served; v.Served && first == "" {
			first = v.Name
		}
	}
	if len(versions) == 0 {
		return first
	}
	for _, version := range versions {
		if serves[version] {
			return version
		}
	}
	return ""
}

func mappingOf(crd *apiextensionsv1.CustomResourceDefinition, version string) *meta.RESTMapping {
	gv := schema.GroupVersion{Group: crd.Spec.Group, Version: version}
	scope := meta.RESTScopeRoot
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		scope = meta.RESTScopeNamespace
	}
	return &meta.RESTMapping{Resource: gv.WithResource(crd.Spec.Names.Plural), GroupVersionKind: gv.WithKind(crd.Spec.Names.Kind), Scope: scope}
}
