package batch_test

import (
	"flag"
	"testing"

	"github.com/flotilla-io/flotilla/internal/rulestest"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/batch"
)

var update = flag.Bool("update", false, "write golden files")

// TestGolden compares what is known about every example with its golden file.
func TestGolden(t *testing.T) { rulestest.CheckGolden(t, batch.Table(), "testdata", *update) }

func TestAggregateConverges(t *testing.T) { rulestest.CheckConverges(t, batch.Table(), "testdata") }
