package customizations_test

import (
	"flag"
	"testing"

	"github.com/flotilla-io/flotilla/internal/rulestest"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
)

var update = flag.Bool("update", false, "write golden files")

// examples are those next to the rules of every ecosystem.
func examples(t testing.TB) []rulestest.Example {
	t.Helper()
	return append(rulestest.Examples(t, "testdata"), rulestest.Examples(t, "batch/testdata")...)
}

// TestGolden compares what is known about every example with its golden file.
func TestGolden(t *testing.T) { rulestest.CheckGolden(t, customizations.Table(), "testdata", *update) }

func TestAggregateConverges(t *testing.T) {
	rulestest.CheckConverges(t, customizations.Table(), "testdata")
}
