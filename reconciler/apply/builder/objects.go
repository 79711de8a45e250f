package builder

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// prepare removes from built objects what is not to be applied, and sorts them.
func prepare(objects []*unstructured.Unstructured) error {
	for _, obj := range objects {
		unstructured.RemoveNestedField(obj.Object, "status")
		if !utils.IsSecret(obj) {
			continue
		}
		// Plain values are written as data, so that a key which leaves Git
		// leaves the hub, too.
		if err := normalize.Unstructured(obj); err != nil {
			return loop.Stalled(meta.BuildFailedReason, fmt.Errorf("%s: its data cannot be read: write values under stringData, or as base64 under data", inventory.Describe(inventory.IDOf(obj))))
		}
	}
	inventory.Sort(objects)
	return nil
}

// Digest identifies what a revision wants, whatever it is called, and says how large that is, in bytes of JSON.
func Digest(objects []*unstructured.Unstructured) (digest string, size int64) {
	hash := sha256.New()
	for _, obj := range objects {
		// What was built from YAML can be written as JSON, and a hash takes all.
		text, _ := json.Marshal(obj.Object)
		text = append(text, '\n')
		_, _ = hash.Write(text)
		size += int64(len(text))
	}
	return fmt.Sprintf("sha256:%x", hash.Sum(nil)), size
}
