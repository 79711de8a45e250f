// Package starts times starts of a control plane.
//
// In goes where the program is; out come the rows of a report. Each control plane has a
// folder of its own, which is removed, and no clusters. The package judges nothing but by
// the goals of the report.
package starts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/bench/usage"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// beginning is one start of a control plane.
type beginning struct {
	// Ready is how many seconds it took until it called itself ready.
	Ready float64 `json:"readySeconds"`
	// CPU is how many seconds of CPU time it took until then.
	CPU float64 `json:"cpuSeconds"`
}

// Measure times starts: the first one of a folder, and the second. bin is the folder of
// the built programs.
func Measure(ctx context.Context, bin string, r *results.Report) error {
	const folders = 5
	kinds := []string{"the first start of a folder", "a start of a folder that is there"}
	samples := map[string][]beginning{}
	for range folders {
		if err := twice(ctx, bin, kinds, samples); err != nil {
			return err
		}
	}
	for _, kind := range kinds {
		var ready, cpu []float64
		for _, s := range samples[kind] {
			ready, cpu = append(ready, s.Ready), append(cpu, s.CPU)
		}
		r.AtMost("start", kind+", until it is ready, p50", results.Percentile(ready, 0.5), "s", 3.5)
		r.Note("start", kind+", CPU time until then, p50", results.Percentile(cpu, 0.5), "s")
	}
	return r.Raw("start", samples)
}

// twice starts a control plane in a new folder, once for each kind.
func twice(ctx context.Context, bin string, kinds []string, samples map[string][]beginning) (err error) {
	dir, err := os.MkdirTemp("", "flotilla-bench-")
	if err != nil {
		return fmt.Errorf("make a folder for a control plane: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, err := filepath.Abs(filepath.Join(bin, "flotillad"))
	if err != nil {
		return fmt.Errorf("find the programs: %w", err)
	}
	for _, kind := range kinds {
		hub, err := localfleet.NewHub(ctx, localfleet.Options{Flotillad: program, Dir: dir})
		if err != nil {
			return err
		}
		one, err := beginningOf(ctx, hub)
		if err = errors.Join(err, hub.Stop()); err != nil {
			return err
		}
		samples[kind] = append(samples[kind], one)
	}
	return nil
}

func beginningOf(ctx context.Context, hub *localfleet.Process) (beginning, error) {
	begin := time.Now()
	if err := hub.Start(); err != nil {
		return beginning{}, err
	}
	if err := hub.Ready(ctx); err != nil {
		return beginning{}, err
	}
	took := time.Since(begin).Seconds()
	cpu, err := usage.CPUSeconds(hub.PID())
	return beginning{Ready: took, CPU: cpu}, err
}
