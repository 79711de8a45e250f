package report

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/policies/plan/comparison"
)

// JSON returns a Comparison as programs read it.
func JSON(c comparison.Comparison) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(c); err != nil {
		return nil, fmt.Errorf("encode the comparison: %w", err)
	}
	return out.Bytes(), nil
}

// YAML returns the same as YAML.
func YAML(c comparison.Comparison) ([]byte, error) {
	out, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode the comparison: %w", err)
	}
	return out, nil
}
