package crds

import (
	"embed"
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed bases/*.yaml
var bases embed.FS

// All returns the definitions, sorted by group and name. Each call returns
// values of its own. An error means that the program was built from broken
// files.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	paths, err := fs.Glob(bases, "bases/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list definitions: %w", err)
	}
	all := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(paths))
	for _, path := range paths {
		crd, err := load(path)
		if err != nil {
			return nil, fmt.Errorf("read definition %s: %w", path, err)
		}
		all = append(all, crd)
	}
	return all, nil
}

func load(path string) (*apiextensionsv1.CustomResourceDefinition, error) {
	data, err := bases.ReadFile(path)
	if err != nil {
		return nil, err
	}
	crd := new(apiextensionsv1.CustomResourceDefinition)
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return nil, err
	}
	return crd, nil
}
