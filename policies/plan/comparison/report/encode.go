package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/policies/plan/comparison"
)

// JSON returns a Comparison as programs read it.
func JSON(c comparison.Comparison) ([]byte, error) {
	out, err := indented(c)
	if err != nil {
		return nil, fmt.Errorf("encode the comparison: %w", err)
	}
	return out, nil
}

func indented(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	return out.Bytes(), err
}

// YAML returns the same as YAML.
func YAML(c comparison.Comparison) ([]byte, error) {
	out, err := YAMLOf(c)
	if err != nil {
		return nil, fmt.Errorf("encode the comparison: %w", err)
	}
	return out, nil
}

// YAMLOf returns a value as YAML. Where a text holds what our YAML cannot, such as a control character, that is JSON with
// codes for it, which is YAML, too.
func YAMLOf(value any) ([]byte, error) {
	if out, err := yaml.Marshal(value); err == nil {
		return out, nil
	}
	out, err := indented(value)
	return []byte(printable(string(out))), err
}

// printable writes the characters of JSON that YAML does not have by their codes.
func printable(text string) string {
	var out strings.Builder
	for _, r := range text {
		if r == '\n' || unicode.IsPrint(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			_, _ = fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}
