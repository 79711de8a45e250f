package registration

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/registration"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// printTakeOver prints the consequences of taking over a cluster. It prints nothing if no other
// control plane has it.
func printTakeOver(out io.Writer, plan *join.TakeOver) error {
	if plan.From == nil {
		return nil
	}
	lines := []string{
		"taking over " + plan.From.Describe() + ", which writes nothing there any more when it notices",
	}
	meaning := map[string]string{
		join.FateOurs:     "a policy here says Overwrite",
		join.FateConflict: "asked for here, left alone until a policy says Overwrite",
		join.FateStays:    "not asked for here, nobody looks after it",
		join.FateTakenOn:  "by it control planes act there as their users",
		join.FateRights:   "to accounts of this control plane that are called like those of the other: delete it there unless they are to have them",
	}
	if plan.Blind {
		meaning[join.FateStays] = "unless this control plane asks for it, which is not known here: its policy says then whether it is overwritten"
	}
	for _, p := range plan.Objects {
		lines = append(lines, fmt.Sprintf("  %s %s: %s", p.Object, p.Fate, meaning[p.Fate]))
	}
	if len(plan.Objects) == 0 {
		lines = append(lines, "  it manages nothing there")
	}
	if len(plan.Unread) > 0 {
		lines = append(lines, "  could not be listed: "+strings.Join(plan.Unread, ", "))
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// claim writes the claim of the agent's control plane to the member.
func (r *registering) claim(cmd *cobra.Command, hub *rest.Config, member client.Client, config *rest.Config) error {
	own, err := client.New(hub, client.Options{Scheme: scheme.New()})
	if err != nil {
		return fmt.Errorf("connect to the control plane at %s: %w", hub.Host, err)
	}
	id, err := join.HubIdentity(cmd.Context(), own)
	if err != nil {
		return fleet.Describe(err)
	}
	if err := r.reportTakeOver(cmd, id, member, config); err != nil {
		return err
	}
	err = join.Claim(cmd.Context(), join.ClaimOptions{Member: member, Hub: id, Cluster: r.cluster.name, Address: hub.Host, Mode: hubclaim.Pull, TakeOver: r.takeOver})
	if errors.Is(err, join.ErrClaimed) {
		return fmt.Errorf("cluster %s is not registered, and its token is used: %w", r.cluster.name, err)
	}
	return fleet.Meanwhile("cluster "+r.cluster.name, err)
}

// reportTakeOver prints the consequences of the takeover, if --take-over is set.
func (r *registering) reportTakeOver(cmd *cobra.Command, id string, member client.Client, config *rest.Config) error {
	if !r.takeOver {
		return nil
	}
	plan, err := join.PlanTakeOver(cmd.Context(), nil, id, member, config) // an agent may not read what is placed
	if err != nil {
		return err
	}
	return printTakeOver(cmd.OutOrStdout(), plan)
}

// planTakeOver is reportTakeOver before anything is done: it only reads from both sides, and does not
// use up the token.
func (r *registering) planTakeOver(cmd *cobra.Command, config *rest.Config) error {
	if !r.takeOver {
		return nil
	}
	member, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return fmt.Errorf("connect to the member cluster at %s: %w", config.Host, err)
	}
	byToken, err := registration.Discover(cmd.Context(), r.hub)
	if err != nil {
		return err
	}
	id, err := registration.Identity(cmd.Context(), byToken)
	if err != nil {
		return err
	}
	return r.reportTakeOver(cmd, id, member, config)
}
