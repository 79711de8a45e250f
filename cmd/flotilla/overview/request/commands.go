package request

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/internal/command"
)

// Commands are those of this package.
func Commands(f *fleet.Flags, now clock.Clock) []*cobra.Command {
	return []*cobra.Command{newReconcileCommand(f, now), newSuspendCommand(f), newResumeCommand(f, now)}
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
	return &requester{hub: hub, clock: o.clock, out: out, namespace: namespace, timeout: o.timeout}, fleet.Describe(err)
}

// perKind makes "VERB source git" and "VERB kustomization".
func perKind(verb *cobra.Command, build func(what *followed) *cobra.Command) *cobra.Command {
	git := build(gitRepositories)
	source := &cobra.Command{Use: "source", Aliases: []string{"sources"}, Short: git.Short, Args: needsCommand}
	source.AddCommand(git)
	verb.AddCommand(source, build(kustomizations))
	verb.Args = needsCommand
	for _, cmd := range []*cobra.Command{verb, source} {
		cmd.RunE = func(*cobra.Command, []string) error { return nil } // never: needsCommand errs
	}
	return verb
}

// needsCommand refuses a call without one of the commands below.
func needsCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return command.Usage(fmt.Errorf("unknown command %q: %s --help lists them", args[0], cmd.CommandPath()))
	}
	if cmd.Name() == "source" {
		return command.Usage(fmt.Errorf("git is missing: %s git NAME", cmd.CommandPath()))
	}
	words := fmt.Sprintf("what is missing: %s source git NAME, or %s kustomization NAME", cmd.CommandPath(), cmd.CommandPath())
	if slices.ContainsFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == "hub" }) {
		words += ", or " + cmd.CommandPath() + " hub"
	}
	return command.Usage(errors.New(words))
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

// defaultTimeout is Flux's.
const defaultTimeout = 5 * time.Minute

func newReconcileCommand(f *fleet.Flags, now clock.Clock) *cobra.Command {
	return perKind(&cobra.Command{
		Use:   "reconcile",
		Short: "Have the fleet look at a source or a Kustomization now",
		Long: `Have the fleet look at a source or a Kustomization now instead of when its
interval is over, and wait for what comes of it.`,
		Example: `  flotilla reconcile source git fleet
  flotilla reconcile kustomization web --with-source`,
	}, func(what *followed) *cobra.Command {
		o := &requestOptions{flags: f, clock: now}
		cmd := &cobra.Command{
			Use: what.words[0] + " NAME", Aliases: what.words[1:], Short: "Have the fleet look at a " + what.kind + " now",
			Args: command.Exactly("NAME"), ValidArgsFunction: completeNames(f, what),
			RunE: func(cmd *cobra.Command, args []string) error {
				r, err := o.requester(cmd.OutOrStdout())
				if err != nil {
					return err
				}
				if o.withSource {
					if err := r.reconcileSource(cmd.Context(), args[0]); err != nil {
						return err
					}
				}
				return r.reconcile(cmd.Context(), what, r.namespace, args[0])
			},
		}
		cmd.Flags().DurationVar(&o.timeout, "timeout", defaultTimeout, "how long to wait")
		if what == kustomizations {
			cmd.Flags().BoolVar(&o.withSource, "with-source", false, "look at its source first")
		}
		return cmd
	})
}

// reconcileSource asks for a look at the source of a Kustomization.
func (r *requester) reconcileSource(ctx context.Context, name string) error {
	obj, err := r.get(ctx, kustomizations, r.namespace, name)
	if err != nil {
		return err
	}
	ref := sourceRef(obj)
	if ref.Kind != gitRepositories.kind {
		return fmt.Errorf("the source of Kustomization %s/%s is a %s, which the fleet does not follow yet", r.namespace, name, ref.Kind)
	}
	namespace := ref.Namespace
	if namespace == "" {
		namespace = r.namespace
	}
	return r.reconcile(ctx, gitRepositories, namespace, ref.Name)
}

// sourceRef is the source of a Kustomization.
func sourceRef(ks client.Object) kustomizev1.CrossNamespaceSourceReference {
	return ks.(*kustomizev1.Kustomization).Spec.SourceRef
}

func newSuspendCommand(f *fleet.Flags) *cobra.Command {
	return perKind(&cobra.Command{
		Use:   "suspend",
		Short: "Leave a source or a Kustomization alone until it is resumed",
		Long: `Leave a source or a Kustomization alone until it is resumed. What runs keeps
running, and changes in members are still put back.`,
		Example: `  flotilla suspend source git fleet
  flotilla suspend kustomization --all`,
	}, func(what *followed) *cobra.Command {
		o := &requestOptions{flags: f}
		cmd := o.several(what, "Leave "+what.plural+" alone until they are resumed", func(ctx context.Context, r *requester, objects []client.Object) error {
			for _, obj := range objects {
				if err := r.suspend(ctx, what, obj, true); err != nil {
					return err
				}
			}
			return nil
		})
		return cmd
	})
}

func newResumeCommand(f *fleet.Flags, now clock.Clock) *cobra.Command {
	resume := perKind(&cobra.Command{
		Use:   "resume",
		Short: "Follow a suspended source or Kustomization again, or go on after a restored backup",
		Long: `Follow a suspended source or Kustomization again, and wait for what comes of
it. With --all, --wait waits. Resume hub has a control plane go on that was set back to
an older backup.`,
		Example: `  flotilla resume source git fleet
  flotilla resume kustomization --all --wait
  flotilla resume hub --dry-run`,
	}, func(what *followed) *cobra.Command {
		o := &requestOptions{flags: f, clock: now}
		cmd := o.several(what, "Follow suspended "+what.plural+" again", func(ctx context.Context, r *requester, objects []client.Object) error {
			for _, obj := range objects {
				if err := r.suspend(ctx, what, obj, false); err != nil {
					return err
				}
			}
			if o.all && !o.wait {
				return nil
			}
			for _, obj := range objects {
				if err := r.wait(ctx, what, obj, seen); err != nil {
					return err
				}
			}
			return nil
		})
		cmd.Flags().DurationVar(&o.timeout, "timeout", defaultTimeout, "how long to wait for each")
		cmd.Flags().BoolVar(&o.wait, "wait", false, "with --all, too, wait until they are followed")
		return cmd
	})
	resume.AddCommand(newResumeHubCommand(f, now))
	return resume
}

// seen reports whether the loop has looked at the object as it is now.
func seen(obj client.Object, p progress) bool {
	ready := apimeta.FindStatusCondition(p.conditions, "Ready")
	return ready != nil && ready.ObservedGeneration == obj.GetGeneration()
}

// several makes a command about the objects that are named, or all.
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
