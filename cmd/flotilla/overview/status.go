package overview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/checkup"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/cmd/flotilla/screen"
	"github.com/flotilla-io/flotilla/cmd/flotilla/tint"
	"github.com/flotilla-io/flotilla/internal/command"
)

// statusOptions are the flags of status.
type statusOptions struct {
	flags    *fleet.Flags
	clock    clock.WithTicker
	output   output
	all      bool
	watch    bool
	interval time.Duration
	check    bool
}

func newStatusCommand(f *fleet.Flags, now clock.WithTicker) *cobra.Command {
	o := &statusOptions{flags: f, clock: now}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the fleet on one screen, and what is not ready and why",
		Long: `Show the fleet on one screen: sources and their revisions, what applies them,
clusters, and what is not ready, with the next step for each.

All namespaces are looked at unless -n names one.`,
		Example: `  flotilla status
  flotilla status -n shop -o wide
  flotilla status --check            # for scripts: exit code 1 if something is not ready
  flotilla status --watch`,
		Args: command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.all && f.Namespace != "" {
				return command.Usage(fmt.Errorf("-A and -n %s: choose one", f.Namespace))
			}
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	o.output.addTo(cmd, asWide, asJSON, asYAML)
	flags := cmd.Flags()
	flags.BoolVarP(&o.all, "all-namespaces", "A", false, "look at all namespaces, which is the default")
	flags.BoolVarP(&o.watch, "watch", "w", false, "show it again whenever it changes, until Ctrl-C")
	flags.DurationVar(&o.interval, "interval", 2*time.Second, "how often --watch looks")
	flags.BoolVar(&o.check, "check", false, "exit with code 1 if something is not ready")
	return cmd
}

func (o *statusOptions) run(ctx context.Context, out io.Writer) error {
	hub, err := listing.Hub(o.flags)
	if err != nil {
		return fleet.Describe(err)
	}
	if o.watch {
		return o.follow(ctx, hub, out)
	}
	found, err := o.survey(ctx, hub)
	if err != nil {
		return fleet.Describe(err)
	}
	if err := o.print(out, found); err != nil {
		return err
	}
	if o.check {
		return verdict(found)
	}
	return nil
}

// survey reads the fleet, and asks the clusters about what is shown as not ready.
func (o *statusOptions) survey(ctx context.Context, hub client.Reader) (situation.Fleet, error) {
	found, err := surveyOf(ctx, hub, o.flags.Namespace, o.check, o.clock.Now())
	if err == nil {
		checkup.Examine(ctx, o.flags, &found)
		checkup.Advise(ctx, hub, &found)
	}
	return found, err
}

// verdict is the error of --check; nil for a fleet that is ready.
func verdict(found situation.Fleet) error {
	switch n := len(found.Problems); {
	case n == 1:
		return errors.New("1 thing is not ready: see above")
	case n > 1:
		return fmt.Errorf("%d things are not ready: see above", n)
	case len(found.Unjudged()) > 0:
		return fmt.Errorf("nobody knows: you may not read %s", strings.Join(found.Unjudged(), ", "))
	}
	return nil
}

func (o *statusOptions) print(out io.Writer, found situation.Fleet) error {
	if done, err := o.output.structured(out, found); done {
		return err
	}
	return found.Text(tint.For(out), situation.TextOptions{Wide: o.output.format == asWide, Width: screen.Width(out), Now: o.clock.Now()})
}

// follow shows the fleet anew when it has changed.
func (o *statusOptions) follow(ctx context.Context, hub client.Reader, out io.Writer) error {
	if o.interval <= 0 {
		return command.Usage(fmt.Errorf("--interval %s: it must be more than nothing", o.interval))
	}
	ticker := o.clock.NewTicker(o.interval)
	defer ticker.Stop()
	terminal := tint.Codes(out)
	var last []byte
	first := true
	for {
		found, err := o.survey(ctx, hub)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// Ages tick: they are no change, and a terminal shows them all the same.
		is := facts(found, err)
		if terminal || first || !bytes.Equal(is, last) {
			if err := o.redraw(out, found, err, terminal, first); err != nil {
				return err
			}
		}
		last, first = is, false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C():
		}
	}
}

// ages are texts that change by themselves, such as "unknown for 1m20s" and "38s ago".
var ages = regexp.MustCompile(`\b(\d+(ms|[smhd]|y))+\b`)

// facts is what a status says, without what changes by itself.
func facts(found situation.Fleet, err error) []byte {
	if err != nil {
		return []byte(err.Error())
	}
	found.Clusters = slices.Clone(found.Clusters)
	for i := range found.Clusters {
		found.Clusters[i].Heard = nil
	}
	found.Problems, found.Notes = slices.Clone(found.Problems), slices.Clone(found.Notes)
	for i := range found.Problems {
		found.Problems[i].Message = ages.ReplaceAllString(found.Problems[i].Message, "")
	}
	for i := range found.Notes {
		found.Notes[i].Message = ages.ReplaceAllString(found.Notes[i].Message, "")
	}
	content, _ := json.Marshal(found) // strings and numbers
	return content
}

// redraw shows a status in the place of the one before, or after it, with the time, where
// nothing can be drawn over.
func (o *statusOptions) redraw(out io.Writer, found situation.Fleet, wrong error, terminal, first bool) error {
	var text bytes.Buffer
	if terminal {
		text.WriteString("\x1b[H\x1b[2J") // to the first line, and clear
	} else if !first && o.output.format == asYAML {
		text.WriteString("---\n")
	} else if !first && o.output.format != asJSON {
		text.WriteString("--- " + o.clock.Now().Format(time.DateTime) + "\n")
	}
	if wrong != nil {
		_, _ = fmt.Fprintf(&text, "not now: %v\n", fleet.Describe(wrong))
	} else if err := o.print(&text, found); err != nil {
		return err
	}
	_, err := out.Write(text.Bytes())
	return err
}
