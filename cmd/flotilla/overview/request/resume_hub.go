package request

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// hubPlan is the output of resume hub with -o json.
type hubPlan struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"` // HubPlan
	// Hold is why the control plane waits; nil if it does not.
	Hold *hubclaim.Hold `json:"hold,omitempty"`
	// Plan is what it does when it continues.
	setback.Plan `json:",inline"`
	// Resumed is true if it continues.
	Resumed bool `json:"resumed"`
}

func newResumeHubCommand(f *fleet.Flags, now clock.Clock) *cobra.Command {
	var dry bool
	var output string
	cmd := &cobra.Command{
		Use:   "hub",
		Short: "Go on after the control plane was set back to an older backup",
		Long: `Go on after the control plane was set back to an older backup.

A control plane that finds that its clusters have seen more than its store knows
changes and removes nothing there. Resume hub prints what it would do to bring them
to what the store says, in which clusters there is nothing to do and which could not
be looked at, and has it do so. Objects that the store does not know of
stay as they are. With --dry-run it is only printed.`,
		Example: `  flotilla resume hub --dry-run
  flotilla resume hub`,
		Args: command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.Output(output, "json"); err != nil {
				return err
			}
			return resumeHub(cmd, f, now, dry, output)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would be done")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json prints the plan for scripts")
	return cmd
}

func resumeHub(cmd *cobra.Command, f *fleet.Flags, now clock.Clock, dry bool, output string) error {
	hub, err := listing.Hub(f)
	if err != nil {
		return fleet.Describe(err)
	}
	plan := hubPlan{APIVersion: situation.APIVersion, Kind: "HubPlan"}
	if plan.Hold, err = setback.Waits(cmd.Context(), hub); err != nil {
		return fleet.Describe(err)
	}
	if plan.Hold == nil {
		if err := judged(cmd.Context(), hub); err != nil {
			return fleet.Describe(err)
		}
		if plan.Elsewhere, err = setback.Elsewhere(cmd.Context(), hub); err != nil {
			return fleet.Describe(err)
		}
	} else {
		if plan.Plan, err = setback.Pending(cmd.Context(), hub, plan.Hold); err != nil {
			return fleet.Describe(err)
		}
	}
	if plan.Changes == nil {
		plan.Changes = []setback.Change{} // scripts read a list
	}
	if output == "" { // before it is done
		if err := plan.text(cmd.OutOrStdout(), dry); err != nil {
			return err
		}
	}
	if !dry {
		if err := plan.mayGoOn(); err != nil {
			return err
		}
	}
	if plan.Hold != nil && !dry {
		if err := setback.New(hub, hub, now).Resume(cmd.Context()); err != nil {
			return fleet.Describe(err)
		}
		plan.Resumed = true
	}
	switch {
	case output == "json":
		encoder := json.NewEncoder(cmd.OutOrStdout())
		encoder.SetIndent("", "  ")
		return encoder.Encode(plan)
	case plan.Resumed:
		_, err = fmt.Fprintln(cmd.OutOrStdout(), "the control plane goes on")
	}
	return err
}

// asked is how long a control plane takes to find out that no copy of it acts in a cluster: hubclaim.UntilMoved, or
// three times as long, and until the next look after that.
const asked = "whether one acts there is known about 40s after a start, or 100s where yet another copy has asked"

// mayGoOn returns an error while another copy of the control plane acts in clusters, or while it is not
// known what would be done in clusters that answer.
func (p *hubPlan) mayGoOn() error {
	switch {
	case len(p.Elsewhere) > 0:
		return fmt.Errorf("not resumed: another copy of this control plane acts in %s, or may: stop the one of the two that is not to go on, and ask again; "+asked, strings.Join(p.Elsewhere, ", "))
	case p.Hold != nil && len(p.Uncompared) > 0:
		return fmt.Errorf("not resumed: what would be done in %s is not known yet; ask again in half a minute", strings.Join(p.Uncompared, ", "))
	}
	return nil
}

// judged returns an error while nobody runs the loops, which find out whether the control plane was
// restored from an older backup.
func judged(ctx context.Context, hub client.Reader) error {
	since, err := listing.Leaderless(ctx, hub)
	if err != nil || since == "" {
		return err
	}
	return fmt.Errorf("%s, so that it is not known whether the control plane was set back: ask again once flotilla status says that somebody does", since)
}

// text prints the plan, before it is carried out or in a dry run.
func (p *hubPlan) text(out io.Writer, dry bool) error {
	if p.Hold == nil && len(p.Elsewhere) == 0 {
		_, err := fmt.Fprintln(out, "the control plane does not wait, as far as clusters were looked at since it started: there is nothing to resume")
		return err
	}
	lines := []string{"the control plane does not wait, as far as clusters were looked at since it started"}
	if p.Hold != nil {
		lines[0] = p.Hold.Found()
	}
	for _, c := range p.Changes {
		lines = append(lines, "  would "+c.String())
	}
	for _, name := range p.Idle {
		lines = append(lines, "  nothing to do in "+name)
	}
	for _, name := range p.Unseen {
		lines = append(lines, "  "+name+" could not be looked at: it is not ready")
	}
	for _, name := range p.Elsewhere {
		lines = append(lines, "  "+name+" could not be looked at: another copy of this control plane acts there, or may")
	}
	for _, name := range p.Uncompared {
		lines = append(lines, "  "+name+" was not looked at yet")
	}
	switch {
	case len(p.Elsewhere) > 0:
		lines = append(lines, "ask again: what would be done is not all known yet; "+asked)
	case len(p.Uncompared) > 0:
		lines = append(lines, "ask again in half a minute: what would be done is not all known yet")
	case len(p.Changes)+len(p.Idle)+len(p.Unseen) == 0:
		lines = append(lines, "  there is no cluster")
	}
	if dry && len(p.Uncompared)+len(p.Elsewhere) == 0 {
		lines = append(lines, "flotilla resume hub goes on")
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}
