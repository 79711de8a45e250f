package bootstrap

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldOwner owns what this package writes.
const fieldOwner = client.FieldOwner("flotilla-bootstrap")

//go:embed objects.yaml
var manifest []byte

// Objects applies the namespaces and roles that the control plane lives by.
func Objects(ctx context.Context, config *rest.Config) error {
	hub, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	objects, err := decode(manifest)
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	for _, obj := range objects {
		if err := hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("bootstrap %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

func decode(content []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var out []*unstructured.Unstructured
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode object %d: %w", len(out), err)
		}
		out = append(out, obj)
	}
}
