package rules

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// maxQuantity is how long a quantity may be, in bytes; any that has a meaning is
// far shorter.
const maxQuantity = 48

// Quantity parses a quantity. It refuses large exponents first: parsing computes
// the power of ten, which could take hours.
func Quantity(text string) (resource.Quantity, error) {
	text = strings.TrimSpace(text)
	if !readable(text) {
		return resource.Quantity{}, fmt.Errorf("%.32q is no quantity", text)
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("%.32q is no quantity", text)
	}
	return q, nil
}

func readable(text string) bool {
	if len(text) > maxQuantity {
		return false
	}
	at := strings.LastIndexAny(text, "eE")
	return at < 0 || len(strings.TrimLeft(text[at+1:], "+-0")) <= 2
}

// quantitiesOK returns an error unless the quantities in a part of an object can
// safely be parsed.
func quantitiesOK(x any) error {
	switch x := x.(type) {
	case []any:
		for _, e := range x {
			if err := quantitiesOK(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, e := range x {
			if err := quantitiesAt(name, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func quantitiesAt(name string, x any) error {
	switch name {
	case "requests", "limits", "overhead", "capacity", "resourceRequest":
		list, ok := x.(map[string]any)
		if !ok {
			return quantitiesOK(x)
		}
		for resource, q := range list {
			if err := quantitiesAt("divisor", q); err != nil {
				return fmt.Errorf("%s.%s: %w", name, resource, err)
			}
		}
		return nil
	case "sizeLimit", "divisor":
		if text, ok := x.(string); ok && !readable(strings.TrimSpace(text)) {
			return fmt.Errorf("%.32q is no quantity", text)
		}
		return nil
	default:
		return quantitiesOK(x)
	}
}
