package admission

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestDistinct checks that of a hundred thousand errors only some are listed, and that they
// are not compared pairwise, which would take far too long.
func TestDistinct(t *testing.T) {
	faults := func(n int) (errs field.ErrorList) {
		for range 2 {
			for i := range n {
				errs = append(errs, field.Required(field.NewPath("spec").Index(i), "name it"))
			}
		}
		return errs
	}
	if got := distinct(faults(100)); len(got) != 100 || got[99].Field != "spec[99]" {
		t.Errorf("of 100 that are told twice: %v", got)
	}
	if got := distinct(faults(100_000)); len(got) != 101 || !strings.Contains(got[100].Error(), "99900 more faults are not named: correct these first") {
		t.Errorf("of 100,000: %d, %v", len(got), got[len(got)-1])
	}
}
