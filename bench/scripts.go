package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/bench/scripts"
)

// scriptsTimed times the operations of customizations written in Lua, called one
// after the other.
func scriptsTimed(_ context.Context, _ *bench, r *results.Report) error {
	operations, err := scripts.Operations(reporting("web", "scripts", false))
	if err != nil {
		return err
	}
	const warm, times = 500, 5000
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		var begin time.Time
		for i := range warm + times {
			if i == warm {
				begin = time.Now()
			}
			if err := operations[name](); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		each := float64(time.Since(begin).Nanoseconds()) / 1000 / times
		r.AtMost("lua", "a script for a Deployment: "+name, each, "µs", 50)
	}
	return nil
}
