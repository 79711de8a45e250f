package rules

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// binary holds the units of memory in which programs on the JVM are configured,
// in bytes. All are powers of two, whatever their names.
var binary = map[string]int64{
	"k": 1 << 10, "kb": 1 << 10, "kibibytes": 1 << 10,
	"m": 1 << 20, "mb": 1 << 20, "mebibytes": 1 << 20,
	"g": 1 << 30, "gb": 1 << 30, "gibibytes": 1 << 30,
	"t": 1 << 40, "tb": 1 << 40, "tebibytes": 1 << 40,
	"p": 1 << 50, "pb": 1 << 50, "pebibytes": 1 << 50,
	"b": 1, "bytes": 1,
}

// Memory reads an amount of memory as programs on the JVM are configured with it,
// such as "512m" or "1 gb". A number without a unit is multiplied by unit, in
// bytes. Other texts, such as "2Gi", are read as Kubernetes' quantities.
func Memory(text string, unit int64) (resource.Quantity, error) {
	text = strings.TrimSpace(text)
	digits := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if digits < 0 {
		digits = len(text)
	}
	name := strings.ToLower(strings.TrimSpace(text[digits:]))
	if name != "" {
		var known bool
		if unit, known = binary[name]; !known {
			q, err := Quantity(text)
			if err == nil && q.Sign() < 0 {
				err = fmt.Errorf("%.40q is less than no memory", text)
			}
			return q, err
		}
	}
	n, err := strconv.ParseInt(text[:digits], 10, 64)
	if err != nil || n > (1<<62)/unit {
		return resource.Quantity{}, fmt.Errorf("%.40q is no amount of memory", text)
	}
	return *resource.NewQuantity(n*unit, resource.BinarySI), nil
}

// Most returns for each resource the larger of two amounts.
func Most(a, b corev1.ResourceList) corev1.ResourceList {
	out := a.DeepCopy()
	for name, q := range b {
		if has, ok := out[name]; !ok || has.Cmp(q) < 0 {
			if out == nil {
				out = corev1.ResourceList{}
			}
			out[name] = q
		}
	}
	return out
}
