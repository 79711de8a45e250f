package crds

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

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

// shared is the group of kinds that clusters have, too, whose definitions people carry there.
const shared = "multicluster.x-k8s.io"

// Own reports whether a definition of that name, such as kustomizations.kustomize.toolkit.fluxcd.io, is one
// that only the control plane itself may bring.
func Own(name string) bool {
	plural, group, _ := strings.Cut(name, ".")
	_, err := fs.Stat(bases, "bases/"+group+"_"+plural+".yaml")
	return err == nil && group != shared
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
