//go:build clouds

package clouds_test

import (
	"testing"

	"github.com/flotilla-io/flotilla/sources/clouds"
)

// TestBuilt is of a build for clouds; see hack/test.sh.
func TestBuilt(t *testing.T) {
	if !clouds.Built {
		t.Error("the tag has no effect")
	}
}
