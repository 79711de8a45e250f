package members

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Hash returns a short hash over bytes.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:15]) // 120 bits are far beyond what chance reaches
}

// Same reports whether two values of one type are the same, semantically. What
// members reported compares as JSON, which servers write as they like.
func Same[T any](a, b T) bool { return semantic.DeepEqual(a, b) }

var semantic = func() conversion.Equalities {
	e := equality.Semantic.Copy()
	if err := e.AddFunc(SameJSON); err != nil {
		panic(err) // a constant
	}
	return e
}()

// SameJSON reports whether two raw values are the same JSON, however it is written.
func SameJSON(a, b runtime.RawExtension) bool {
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	var x, y any
	if utiljson.Unmarshal(a.Raw, &x) != nil || utiljson.Unmarshal(b.Raw, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}
