// Command bench measures the whole system on this machine against the figures
// that the design promises: writes, conflicts, latency, throughput, CPU time
// and memory.
//
// In go the built programs; out come a table, bench/out/summary.json, and the
// raw samples beside it. Counts are exact and comparable between machines; times
// are only comparable within one run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// options are what the command line sets.
type options struct {
	bin, out string
	rows     string
	apps     int
	samples  int
	members  int
}

func main() {
	opts := options{}
	flag.StringVar(&opts.bin, "bin", "bin", "where the built programs are")
	flag.StringVar(&opts.out, "out", "bench/out", "where the results go")
	flag.StringVar(&opts.rows, "rows", "1,2,3,4,6", "which rows of the design's table to measure")
	flag.IntVar(&opts.apps, "apps", 1000, "how many Deployments row 6 propagates")
	flag.IntVar(&opts.samples, "samples", 200, "how many changes row 4 times")
	flag.IntVar(&opts.members, "members", 3, "how many member clusters there are")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, opts); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// measure runs the chosen rows on one fleet and writes the report.
func measure(ctx context.Context, opts options) (err error) {
	dir, err := os.MkdirTemp("", "flotilla-bench-")
	if err != nil {
		return fmt.Errorf("make a folder for the fleet: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bench, err := start(ctx, opts, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bench.fleet.Stop()) }()

	report := &report{dir: opts.out}
	for _, row := range rows {
		if !wanted(opts.rows, row.numbers) {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring %s …\n", row.name)
		if err := row.run(ctx, bench, report); err != nil {
			return fmt.Errorf("measure %s: %w", row.name, err)
		}
	}
	report.print(os.Stdout)
	return report.write(filepath.Join(opts.out, "summary.json"))
}

// row is one measurement; it may fill several rows of the table.
type row struct {
	name    string
	numbers []string
	run     func(ctx context.Context, b *bench, r *report) error
}

// rows are in the order in which they leave the fleet as the next one needs it.
var rows = []row{
	{"one Deployment", []string{"1"}, oneDeployment},
	{"latency of a change", []string{"4"}, latency},
	{"an unchanged poll, and rest", []string{"2"}, rest},
	{"many Deployments", []string{"6", "3"}, manyDeployments},
	{"a restart", []string{"2"}, restart},
}

func wanted(list string, numbers []string) bool {
	for number := range strings.SplitSeq(list, ",") {
		for _, have := range numbers {
			if strings.TrimSpace(number) == have {
				return true
			}
		}
	}
	return false
}
