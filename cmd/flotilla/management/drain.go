package management

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/draining"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/drain"
)

// drains is one call of drain.
type drains struct {
	target
	cluster string
	preview bool
	output  string
	timeout time.Duration
	clock   clock.Clock
	out     io.Writer
	errOut  io.Writer
}

func newDrain(f *fleet.Flags) *cobra.Command {
	d := &drains{target: target{fleet: f, dryRun: "none"}, clock: clock.RealClock{}}
	cmd := &cobra.Command{
		Use:   "drain NAME",
		Short: "Move everything off a cluster that is well",
		Long: `Move everything off a cluster that is well, to where policies have it, and wait until it has
left. Failover need not be on.

The cluster is cordoned and gets the taint cluster.flotilla.io/drain:NoExecute. A new place
is found for each template first. The old copy stays until all that replaces it is healthy,
whatever the graceful-eviction timeout, unless its policy wants it gone first (purgeMode
Directly); what has no other place stays.
At most as many are moved in a second as flotillad serve --resource-eviction-rate says. What
runs in several clusters as a whole (Duplicated) may have one copy less, if its policy allows.
A policy that tolerates the taint keeps what it carries where it is, for as long as it says.

The drain is in the cluster, and not in this command: ctrl-c ends the watching alone, and
the same command goes on with it. flotilla uncordon NAME ends the drain, and --return
has what was moved placed anew. --dry-run shows what would go where by what is known now: it
counts what fits in clusters by their nodes, as the drain does, where you may list these.

A volume's data stays in the cluster, which is said of each template that it belongs to.
What has come to its end there stays as a record. The exit code is 0 once nothing else that
is placed by policies is there any more, and 1 if something stays, as its policy has it or
as its move is refused. Works that somebody wrote by hand stay, and do not count.`,
		Example: `  flotilla drain east --dry-run
  flotilla drain east
  flotilla drain east --timeout 30m -o json
  flotilla uncordon east --return`,
		Args:              command.Exactly("NAME"),
		ValidArgsFunction: firstOnly(f.CompleteClusters),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := d.check(); err != nil {
				return err
			}
			d.cluster, d.out, d.errOut = args[0], cmd.OutOrStdout(), cmd.ErrOrStderr()
			hub, err := f.Client()
			if err != nil {
				return fleet.Describe(err)
			}
			return fleet.Describe(d.run(cmd.Context(), hub))
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&d.preview, "dry-run", false, "only show what would go where, and what could not")
	flags.StringVarP(&d.output, "output", "o", "", "how to print: json; default is text")
	flags.DurationVar(&d.timeout, "timeout", 0, "how long to watch; 0 is until all has left. The drain goes on after that")
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // it was defined above
	}
	return cmd
}

// firstOnly completes only the first argument.
func firstOnly(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, word)
	}
}

func (d *drains) check() error {
	switch {
	case d.timeout < 0:
		return command.Usage(errors.New("--timeout must not be negative: 0 waits until all has left"))
	case d.preview && d.timeout > 0:
		return command.Usage(errors.New("--dry-run waits for nothing: leave --timeout out"))
	}
	return command.Output(d.output, "json")
}

func (d *drains) run(ctx context.Context, hub client.Client) error {
	cluster, err := draining.Cluster(ctx, hub, d.cluster)
	if err != nil {
		return err
	}
	if err := draining.Drainable(cluster); err != nil {
		return err
	}
	if d.preview {
		members := func(cluster string) (kubernetes.Interface, error) {
			return d.fleet.Member(cluster).KubernetesClientSet()
		}
		over := draining.Late(d.errOut, d.clock)
		report, err := draining.Plan(ctx, hub, members, d.cluster, d.clock.Now())
		over()
		if err != nil {
			return err
		}
		if d.output == "json" {
			return errors.Join(report.JSON(d.out), report.Verdict())
		}
		return errors.Join(report.Table(d.out), report.Verdict())
	}
	watch := draining.Watch{Hub: hub, Cluster: d.cluster, Clock: d.clock, Out: d.out, ErrOut: d.errOut, Timeout: d.timeout}
	if d.output == "json" {
		watch.Out = io.Discard
	}
	if err := watch.Begin(ctx); err != nil {
		return err
	}
	changed, err := d.change(ctx, hub, cluster, edit{set: drain.Taints(), overwrite: true})
	if err != nil {
		return err
	}
	what := "cordoned; what runs there is moved"
	switch {
	case changed:
	case watch.Over():
		what = "drained already"
	default:
		what = "is being drained already"
	}
	if _, err := fmt.Fprintf(watch.Out, "cluster/%s %s\n", d.cluster, what); err != nil {
		return err
	}
	return d.follow(ctx, &watch)
}

// follow watches until nothing is on its way, and reports the outcome.
func (d *drains) follow(ctx context.Context, watch *draining.Watch) error {
	rows, wrong := watch.Run(ctx)
	report := draining.Report{Cluster: d.cluster, Rows: rows}
	if d.output == "json" {
		wrong = errors.Join(report.JSON(d.out), wrong)
	}
	if wrong != nil {
		return wrong
	}
	if err := report.Verdict(); err != nil {
		return err
	}
	return report.Done(watch.Out)
}
