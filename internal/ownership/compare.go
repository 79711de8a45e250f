package ownership

import (
	"k8s.io/apimachinery/pkg/api/equality"
)

// same reports whether two values are the same JSON.
func (r *reader) same(a, b any) bool {
	x, isX := number(a)
	y, isY := number(b)
	if isX && isY {
		r.spent++
		return x == y
	}
	return r.equal(a, b)
}

// equal is same for what is inside of two values: numbers are of one type there.
func (r *reader) equal(a, b any) bool {
	if r.spent++; r.exhausted() {
		return false
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for key, value := range x {
			other, has := y[key]
			if r.spent += len(key); !has || !r.equal(value, other) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !r.equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case string:
		y, ok := b.(string)
		if ok && len(x) == len(y) {
			r.spent += len(x)
		}
		return ok && x == y
	case nil, bool, int64, float64:
		return a == b
	default:
		return equality.Semantic.DeepEqual(a, b)
	}
}

// sameKey reports whether two items have the same key fields. One that has a
// default may be missing.
func (r *reader) sameKey(keys, a, b map[string]any) bool {
	equal := 0
	for field := range keys {
		x, hasX := a[field]
		y, hasY := b[field]
		switch {
		case hasX && hasY && !r.same(x, y):
			return false
		case hasX && hasY:
			equal++
		}
	}
	return equal > 0
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	default:
		return 0, false
	}
}
