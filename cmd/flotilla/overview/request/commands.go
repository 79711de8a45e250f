package request

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/internal/command"
)

// Commands returns the commands of this package.
func Commands(f *fleet.Flags, now clock.Clock) []*cobra.Command {
	return []*cobra.Command{newReconcileCommand(f, now), newSuspendCommand(f), newResumeCommand(f, now), newRebalanceCommand(f, now)}
}

// requestOptions are the flags of reconcile, suspend and resume.
type requestOptions struct {
	flags      *fleet.Flags
	clock      clock.Clock
	timeout    time.Duration
	withSource bool
	all        bool
	wait       bool
}

func (o *requestOptions) requester(out io.Writer) (*requester, error) {
	hub, err := listing.Hub(o.flags)
	if err != nil {
		return nil, fleet.Describe(err)
	}
	namespace, _, err := o.flags.Factory().ToRawKubeConfigLoader().Namespace()
	quiet := quietPipe
	if printers.IsTerminal(out) {
		quiet = quietTerminal
	}
	return &requester{hub: hub, clock: o.clock, out: out, namespace: namespace, timeout: o.timeout, quiet: quiet}, fleet.Describe(err)
}

// perKind adds "VERB source git", one for each kind of sources, "VERB kustomization" and "VERB receiver" to a verb.
func perKind(verb *cobra.Command, build func(what *followed) *cobra.Command) *cobra.Command {
	source := &cobra.Command{Use: "source", Aliases: []string{"sources"}, Short: verb.Short, Args: needsCommand}
	for _, what := range sources() {
		source.AddCommand(build(what))
	}
	verb.AddCommand(source, build(kustomizations), build(receivers))
	verb.Args = needsCommand
	for _, cmd := range []*cobra.Command{verb, source} {
		cmd.RunE = func(*cobra.Command, []string) error { return nil } // never: needsCommand errs
	}
	return verb
}

// needsCommand returns an error for a call without a subcommand.
func needsCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		kind, name, ok := strings.Cut(args[0], "/")
		for _, what := range append(sources(), kustomizations, receivers) {
			switch named := strings.EqualFold(kind, what.kind) || strings.EqualFold(kind, what.plural); {
			case ok && (named || slices.Contains(what.words, strings.ToLower(kind))):
				return command.Usage(fmt.Errorf("%q is written in two words: %s %s %s", args[0], cmd.CommandPath(), what.path, name))
			case named:
				return command.Usage(fmt.Errorf("%q is written so: %s %s %s", strings.Join(args, " "), cmd.CommandPath(), what.path, strings.Join(append(args, "NAME")[1:max(len(args), 2)], " ")))
			}
		}
	}
	if cmd.Name() == "source" {
		return command.Usage(fmt.Errorf("the kind is missing: %s", strings.Join(waysTo(cmd, append(args, "NAME")[0]), ", or ")))
	}
	if len(args) > 0 {
		return command.Usage(fmt.Errorf("unknown command %q: %s --help lists them", args[0], cmd.CommandPath()))
	}
	words := fmt.Sprintf("source or kustomization is missing: %s source git NAME, or %s kustomization NAME", cmd.CommandPath(), cmd.CommandPath())
	if slices.ContainsFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == "hub" }) {
		words += ", or " + cmd.CommandPath() + " hub"
	}
	return command.Usage(errors.New(words))
}

// waysTo are the command lines about a source of a name, one for each kind.
func waysTo(cmd *cobra.Command, name string) []string {
	var out []string
	for _, what := range sources() {
		out = append(out, cmd.CommandPath()+" "+what.words[0]+" "+name)
	}
	return out
}

// completeNames offers the names of the kind.
func completeNames(f *fleet.Flags, what *followed) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), fleet.CompletionTimeout)
		defer cancel()
		o := requestOptions{flags: f}
		r, err := o.requester(io.Discard)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		objects, err := r.chosen(ctx, what, nil, true)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, obj := range objects {
			names = append(names, obj.GetName())
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// defaultTimeout is the same as Flux's.
const defaultTimeout = 5 * time.Minute

// several returns a command about named objects, or all.
func (o *requestOptions) several(what *followed, short string, run func(context.Context, *requester, []client.Object) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: what.words[0] + " NAME...", Aliases: what.words[1:], Short: short, ValidArgsFunction: completeNames(o.flags, what),
		Args: func(_ *cobra.Command, args []string) error {
			if o.all != (len(args) == 0) {
				return command.Usage(errors.New("say which: NAMEs or --all"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := o.requester(cmd.OutOrStdout())
			if err != nil {
				return err
			}
			objects, err := r.chosen(cmd.Context(), what, args, o.all)
			if err != nil {
				return err
			}
			return run(cmd.Context(), r, objects)
		},
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "all of the namespace")
	return cmd
}
