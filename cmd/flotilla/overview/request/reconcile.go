package request

import (
	"context"
	"fmt"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
)

func newReconcileCommand(f *fleet.Flags, now clock.Clock) *cobra.Command {
	return perKind(&cobra.Command{
		Use:   "reconcile",
		Short: "Have the fleet look at a source, a Kustomization or a Receiver now",
		Long: `Have the fleet look at a source, a Kustomization or a Receiver now instead of when its
interval is over, and wait for what comes of it.`,
		Example: `  flotilla reconcile source git fleet -n flux-system
  flotilla reconcile kustomization web --with-source -n flux-system`,
	}, func(what *followed) *cobra.Command {
		o := &requestOptions{flags: f, clock: now}
		cmd := &cobra.Command{
			Use: what.words[0] + " NAME", Aliases: what.words[1:], Short: "Have the fleet look at " + a(what.kind) + " now",
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

// a returns a kind with its article.
func a(kind string) string {
	if strings.IndexAny(kind, "AEIO") == 0 {
		return "an " + kind
	}
	return "a " + kind
}

// reconcileSource requests a reconciliation of the source of a Kustomization.
func (r *requester) reconcileSource(ctx context.Context, name string) error {
	obj, err := r.get(ctx, kustomizations, r.namespace, name)
	if err != nil {
		return err
	}
	ref := sourceRef(obj)
	namespace := ref.Namespace
	if namespace == "" {
		namespace = r.namespace
	}
	for _, what := range sources() {
		if what.kind == ref.Kind {
			return r.reconcile(ctx, what, namespace, ref.Name)
		}
	}
	return fmt.Errorf("the source of Kustomization %s/%s is %s, which the fleet does not follow yet", r.namespace, name, a(ref.Kind))
}

// sourceRef returns the reference to the source of a Kustomization.
func sourceRef(ks client.Object) kustomizev1.CrossNamespaceSourceReference {
	return ks.(*kustomizev1.Kustomization).Spec.SourceRef
}
