//go:build !clouds

package clouds_test

import (
	"testing"

	"github.com/flotilla-io/flotilla/sources/clouds"
)

// TestNotBuilt: who does not ask for clouds has none.
func TestNotBuilt(t *testing.T) {
	if clouds.Built {
		t.Error("clouds are there without the tag")
	}
}
