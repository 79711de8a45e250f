package admission

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestDistinct: what is wrong a hundred thousand times is not compared each with each,
// which would not end.
func TestDistinct(t *testing.T) {
	const n = 100_000
	var errs field.ErrorList
	for range 2 {
		for i := range n {
			errs = append(errs, field.Required(field.NewPath("spec").Index(i), "name it"))
		}
	}
	if got := distinct(errs); len(got) != n || got[0].Field != "spec[0]" || got[n-1].Field != "spec[99999]" {
		t.Errorf("%d of them are left: %v", len(got), got[0])
	}
}
