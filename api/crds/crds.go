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

// ConversionPath is the path that the server converts old bindings under.
const ConversionPath = "/convert"

// An Option changes the definitions that All returns.
type Option func(*apiextensionsv1.CustomResourceDefinition)

// WithConversion makes kinds that are served in several versions be converted
// by the server at url, an https URL with its path (see ConversionPath). Its
// certificate is checked against caBundle, PEM; nil: against the API server's
// own roots. Without this option the API server only exchanges the version, and
// fields that another version calls differently are lost.
func WithConversion(url string, caBundle []byte) Option {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		if len(crd.Spec.Versions) < 2 {
			return
		}
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: caBundle},
				ConversionReviewVersions: []string{"v1"},
			},
		}
	}
}

// All returns the definitions, sorted by group and name. Each call returns
// values of its own. An error means that the program was built from broken
// files.
func All(opts ...Option) ([]*apiextensionsv1.CustomResourceDefinition, error) {
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
		for _, opt := range opts {
			opt(crd)
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
