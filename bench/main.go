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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/flotilla-io/flotilla/bench/artifacts"
	"github.com/flotilla-io/flotilla/bench/builds"
	"github.com/flotilla-io/flotilla/bench/estimator"
	"github.com/flotilla-io/flotilla/bench/fakes"
	"github.com/flotilla-io/flotilla/bench/flapping"
	"github.com/flotilla-io/flotilla/bench/life"
	"github.com/flotilla-io/flotilla/bench/monorepo"
	"github.com/flotilla-io/flotilla/bench/overrides"
	"github.com/flotilla-io/flotilla/bench/polling"
	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/bench/reviews"
	"github.com/flotilla-io/flotilla/bench/starts"
	"github.com/flotilla-io/flotilla/bench/transfers"
)

// options are what the command line sets.
type options struct {
	bin       programs
	out       string
	rows      string
	apps      int
	samples   int
	members   int
	clusters  int
	placed    int
	policies  int
	templates int
	changes   int
	fakes     int
	flips     int
	lengths
	kept    int
	compare bool
}

// lengths are how long statuses change in status-storm, and a member comes and goes in flap; and how many MiB of history
// sources fetches from.
type lengths struct {
	storm, flap time.Duration
	history     int
}

// programs are where those are that are measured, and further flags of the control plane.
type programs struct{ dir, hub string }

func main() {
	opts := options{}
	flag.StringVar(&opts.bin.dir, "bin", "bin", "where the built programs are")
	flag.StringVar(&opts.out, "out", "bench/out", "where the results go")
	flag.StringVar(&opts.rows, "rows", "1,2,3,4,5,6,7,8,9,12,13,match,status-flip,status-storm,lua,start,life,monorepo,sources,oci,agents,tenants,estimator,flap,review", "which rows of the design's table to measure, and by name: match for the matching of policies, status-flip, status-storm, lua, start, life, monorepo, sources, oci, agents, tenants, estimator, flap, review")
	flag.IntVar(&opts.apps, "apps", 1000, "how many Deployments row 6 propagates")
	flag.IntVar(&opts.samples, "samples", 200, "how many changes row 4 times, and commits tenants, alone and attacked")
	flag.IntVar(&opts.members, "members", 3, "how many member clusters there are")
	flag.IntVar(&opts.clusters, "clusters", 100, "how many clusters rows 7 and 8 place on, and how many agents row agents runs: 40 MB each")
	flag.IntVar(&opts.placed, "placed", 2000, "how many Deployments row 7 places")
	flag.IntVar(&opts.policies, "policies", 1000, "how many policies there are to match")
	flag.IntVar(&opts.templates, "templates", 10, "how many templates each of them carries")
	flag.IntVar(&opts.changes, "changes", 30, "how many placements row 8 times")
	flag.IntVar(&opts.fakes, "serve-fakes", 0, "serve that many fake members instead, until the standard input ends; row 8 runs it")
	flag.IntVar(&opts.flips, "flips", 60, "how many changes of a status status-flip times")
	flag.DurationVar(&opts.storm, "storm", time.Minute, "how long statuses change in status-storm")
	flag.DurationVar(&opts.flap, "flap", 10*time.Minute, "how long a member comes and goes in flap")
	flag.IntVar(&opts.history, "history", 128, "how many MiB of history the repository has whose transfers sources counts; the goal is about 1024")
	flag.IntVar(&opts.kept, "kept", 1000, "for how many Deployments on ten members row 12 measures the memory")
	flag.StringVar(&opts.bin.hub, "hub-args", "", "further flags of the control plane, separated by spaces, such as --reporting=karmada")
	flag.BoolVar(&opts.compare, "compare", false, "print two summaries side by side instead: bench -compare before.json after.json")
	flag.Parse()

	run := measure
	switch {
	case opts.fakes > 0:
		run = func(ctx context.Context, opts options) error { return fakes.Serve(ctx, opts.fakes) }
	case opts.compare:
		run = compareFiles
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, opts)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// compareFiles compares the summaries that the command line names.
func compareFiles(context.Context, options) error {
	if flag.NArg() != 2 {
		return errors.New("-compare takes two files: the summary of before and that of after")
	}
	return results.Compare(os.Stdout, flag.Arg(0), flag.Arg(1))
}

// measure runs the chosen rows, stage by stage, and writes the report.
func measure(ctx context.Context, opts options) error {
	report := &results.Report{Dir: opts.out}
	for _, s := range stages(opts) {
		s.rows = slices.DeleteFunc(s.rows, func(r row) bool { return !wanted(opts.rows, r.numbers) })
		if len(s.rows) == 0 {
			continue
		}
		if err := s.measure(ctx, opts, report); err != nil {
			return err
		}
	}
	report.Print(os.Stdout)
	return report.Write(filepath.Join(opts.out, "summary.json"))
}

// stage is some rows and the fleet that they are measured on.
type stage struct {
	fleet *setup // nil: the rows need none
	rows  []row
}

func (s stage) measure(ctx context.Context, opts options, report *results.Report) (err error) {
	bench := &bench{options: opts}
	if s.fleet != nil {
		dir, err := os.MkdirTemp("", "flotilla-bench-")
		if err != nil {
			return fmt.Errorf("make a folder for the fleet: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		if bench, err = start(ctx, opts, *s.fleet, dir); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, bench.stop()) }()
	}
	for _, row := range s.rows {
		fmt.Fprintf(os.Stderr, "measuring %s …\n", row.name)
		begin := time.Now()
		if err := row.measure(ctx, bench, report); err != nil {
			return fmt.Errorf("measure %s: %w", row.name, err)
		}
		fmt.Fprintf(os.Stderr, "… took %.0fs\n", time.Since(begin).Seconds())
	}
	return nil
}

// row is one measurement; it may fill several rows of the table.
type row struct {
	name    string
	numbers []string
	run     func(ctx context.Context, b *bench, r *results.Report) error
}

// measure runs the row and ends the watches that it began.
func (r row) measure(ctx context.Context, b *bench, report *results.Report) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	return r.run(ctx, b, report)
}

// stages are in the order in which they are measured; the rows of one are in
// the order in which they leave the fleet as the next one needs it.
func stages(opts options) []stage {
	members := make([]string, opts.members)
	for i := range members {
		members[i] = fmt.Sprintf("member%d", i+1)
	}
	placing := []string{"--controllers", "template,scheduler"}
	// Nobody reports for clusters that have no members: they must not be taken for lost before all is measured.
	believing := []string{"--cluster-monitor-grace-period=1h", "--cluster-startup-grace-period=1h"}
	// A member that was killed is lost within seconds, and left as soon as none other is found to be.
	failing := []string{"--failover=on", "--failover-tolerance=1s", "--cluster-failure-threshold=3s", "--cluster-status-update-frequency=1s"}
	return []stage{
		{nil, []row{
			{"decisions in memory", []string{"7", "7-memory"}, decisions},
			{"policies that match, in memory", []string{"match", "match-memory"}, matching},
			{"scripts for a kind", []string{"lua"}, scriptsTimed},
			{"what fits in a large cluster", []string{"estimator"}, func(_ context.Context, _ *bench, r *results.Report) error { return estimator.Measure(r) }},
			{"kustomize applications", []string{"13"}, func(ctx context.Context, _ *bench, r *results.Report) error { return builds.Measure(ctx, r) }},
			{"reviews of a change", []string{"review"}, func(_ context.Context, _ *bench, r *results.Report) error { return reviews.Measure(r) }},
			{"transfers of a large repository", []string{"sources", "sources-bytes"}, func(ctx context.Context, b *bench, r *results.Report) error {
				return transfers.Measure(ctx, b.history, r)
			}},
			{"starts of a control plane", []string{"start"}, func(ctx context.Context, b *bench, r *results.Report) error { return starts.Measure(ctx, b.bin.dir, r) }},
		}},
		{&setup{members: members}, []row{
			{"one Deployment", []string{"1"}, oneDeployment},
			{"latency of a change", []string{"4"}, latency},
			{"an unchanged poll, and rest", []string{"2"}, rest},
			{"many Deployments", []string{"6", "3"}, manyDeployments},
			{"a restart", []string{"2"}, restart},
		}},
		{&setup{members: members[:2]}, []row{{"the life of 200 Deployments", []string{"life", "life-200"}, lifeOf(200)}}},
		{&setup{members: members[:2]}, []row{{"the life of 1,000 Deployments", []string{"life", "life-1000"}, lifeOf(1000)}}},
		{&setup{members: members[:2], hubArgs: failing}, []row{{"a cluster that must be left", []string{"9"}, moved}}},
		{&setup{members: members[:2], hubArgs: []string{"--failover=on"}}, []row{{"a member that comes and goes", []string{"flap", "flap-unseen"}, comes("flap-unseen")}}},
		{&setup{members: members[:2], hubArgs: []string{"--failover=on", "--cluster-failure-threshold=3s", "--cluster-success-threshold=3s", "--cluster-status-update-frequency=1s"}}, []row{{"a member that is seen to come and go", []string{"flap", "flap-seen"}, comes("flap-seen")}}},
		{&setup{hubArgs: placing}, []row{{"decisions persisted", []string{"7", "7-persisted"}, placements}}},
		{&setup{hubArgs: believing}, []row{{"decisions persisted, by all loops", []string{"7", "7-all-loops"}, placementsByAll}}},
		{&setup{hubArgs: placing}, []row{
			{"an edit of one policy among many", []string{"match", "match-edit"}, oneOfMany},
			{"a restart with many policies", []string{"match", "match-edit"}, restart},
		}},
		{&setup{fakes: opts.members}, []row{{"a status that flips", []string{"status-flip"}, statusFlip}}},
		{&setup{fakes: opts.members}, []row{{"statuses that flip all the time", []string{"status-storm", "3"}, statusStorm}}},
		{&setup{fakes: 10}, []row{{"memory per template and cluster", []string{"12"}, memory}}},
		{&setup{fakes: opts.clusters}, []row{{"one placement on many clusters", []string{"8"}, wide}}},
		{&setup{}, []row{{"a commit to a large repository", []string{"monorepo"}, monorepoTimed}}},
		{&setup{members: members}, []row{{"a commit with overrides", []string{"overrides"}, overridesTimed}}},
		{&setup{}, []row{{"sources that do not change", []string{"sources"}, sourcesTimed(polling.Measure)}}},
		{&setup{}, []row{{"artifacts of a registry", []string{"oci"}, func(ctx context.Context, b *bench, r *results.Report) error {
			return artifacts.Measure(ctx, artifacts.Fleet{Hub: b.fleet.Hub, Client: b.hub}, r)
		}}}},
		{&setup{members: members, hubArgs: []string{"--receiver-address=" + receiverAddress}}, []row{{"a push until it is everywhere", []string{"5"}, sourcesTimed(polling.MeasurePushes)}}},
		{&setup{}, []row{{"a tenant whose neighbour attacks", []string{"tenants"}, neighbours}}},
		{&setup{fakes: opts.clusters}, []row{{"agents at rest", []string{"agents"}, idleAgents}}},
	}
}

// monorepoTimed measures a commit to a repository that many Kustomizations follow.
func monorepoTimed(ctx context.Context, b *bench, r *results.Report) error {
	return monorepo.Measure(ctx, monorepo.Fleet{Hub: b.fleet.Hub, Client: b.hub, Git: b.fleet.Git, Dir: b.dir, Quiet: b.quiet}, r)
}

// overridesTimed measures a commit that changes Deployments and what differs per cluster.
func overridesTimed(ctx context.Context, b *bench, r *results.Report) error {
	return overrides.Measure(ctx, overrides.Fleet{Hub: b.fleet.Hub, Client: b.hub, Members: b.members, Git: b.fleet.Git, Dir: b.dir, Namespace: namespace, Quiet: b.quiet}, r)
}

// receiverAddress is where webhooks are sent to: beside what the system gives to those who ask for any port.
const receiverAddress = "127.0.0.1:29292"

// sourcesTimed measures sources, by the Git server of the fleet.
func sourcesTimed(by func(context.Context, polling.Fleet, *results.Report) error) func(context.Context, *bench, *results.Report) error {
	return func(ctx context.Context, b *bench, r *results.Report) error {
		return by(ctx, polling.Fleet{Hub: b.fleet.Hub, Client: b.hub, Members: b.members, Git: b.fleet.Git, Dir: b.dir, Receiver: receiverAddress, Quiet: b.quiet}, r)
	}
}

// lifeOf takes so many Deployments through their life.
func lifeOf(n int) func(context.Context, *bench, *results.Report) error {
	return func(ctx context.Context, b *bench, r *results.Report) error {
		return life.Measure(ctx, life.Fleet{Hub: b.fleet.Hub, Client: b.hub, Requests: b.requests, Members: b.members, Processes: b.fleet.Members, Namespace: namespace, Quiet: b.quiet}, n, r)
	}
}

// moved takes 1,000 Deployments off the one of two members in which they run.
func moved(ctx context.Context, b *bench, r *results.Report) error {
	return life.MeasureMoves(ctx, life.Fleet{Hub: b.fleet.Hub, Client: b.hub, Requests: b.requests, Members: b.members, Processes: b.fleet.Members, Namespace: namespace, Quiet: b.quiet}, 1000, r)
}

// comes has the first member come and go.
func comes(row string) func(context.Context, *bench, *results.Report) error {
	return func(ctx context.Context, b *bench, r *results.Report) error {
		const first = "member1"
		return flapping.Measure(ctx, flapping.Fleet{Client: b.hub, Name: first, Member: b.fleet.Members[first], Namespace: namespace, Quiet: b.quiet}, b.flap, row, r)
	}
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
