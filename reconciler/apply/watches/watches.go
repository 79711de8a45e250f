// Package watches decides which change of which object starts a run of which Kustomization.
//
// In go events of Kustomizations, their sources, bindings, clusters, objects that others delete, and of what a Kustomization
// refers to (ConfigMaps, Secrets) or waits for (kinds, namespaces, rights); out come the requests for these runs, and which
// of them need a full one. ConfigMaps and Secrets are watched by metadata alone, and only with Flux's label for that,
// as all of them would be too many: their contents are never in this process because of it. It reads caches, and writes nothing.
package watches

import (
	"context"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/apply/approvals"
	"github.com/flotilla-io/flotilla/reconciler/apply/dependencies"
	"github.com/flotilla-io/flotilla/reconciler/apply/suspended"
	"github.com/flotilla-io/flotilla/reconciler/origins"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// Deps are what the watches call.
type Deps struct {
	// Hub reads from the cache.
	Hub client.Client
	// States are what is known of runs.
	States States
	// Suspended keeps the statuses of suspended Kustomizations.
	Suspended *suspended.Keeper
	// Templates reports which templates others delete; nil for none.
	Templates Templates
	Clock     clock.PassiveClock
	// Own let the events of Kustomizations pass.
	Own []predicate.Predicate
}

// Of returns a builder of the loop's controller with all watches.
func Of(ctx context.Context, mgr ctrl.Manager, deps Deps) (*builder.Builder, error) {
	if err := dependencies.Index(ctx, mgr); err != nil {
		return nil, err
	}
	mapper := MapFuncs{Hub: deps.Hub, States: deps.States}
	gone := &Deletions{MapFuncs: mapper, Scheme: deps.Hub.Scheme(), Suspended: deps.Suspended}
	if deps.Templates != nil {
		deps.Templates.Listen(templatestore.Listener{Changed: gone.Changed})
	}
	if err := watchReferences(mgr, gone.Referred); err != nil {
		return nil, err
	}
	if err := mapper.WatchClusters(mgr, &gone.Inbox, deps.Clock); err != nil {
		return nil, err
	}
	if err := NewPrerequisites(mapper, &gone.Inbox).Register(mgr); err != nil {
		return nil, err
	}
	loop := ctrl.NewControllerManagedBy(mgr)
	for _, kind := range Kinds() {
		loop.Watches(kind, gone.OfKind())
	}
	for _, kind := range origins.Kinds() {
		loop.Watches(kind.New(), handler.EnqueueRequestsFromMapFunc(mapper.UsersOf), builder.WithPredicates(NewArtifact()))
	}
	loop.Watches(&gitopsv1alpha1.PullRequestReview{}, handler.EnqueueRequestsFromMapFunc(mapper.Held), builder.WithPredicates(approvals.Changed()))
	return loop.
		For(&kustomizev1.Kustomization{}, builder.WithPredicates(append(deps.Own, Asked())...)).
		Watches(&kustomizev1.Kustomization{}, handler.EnqueueRequestsFromMapFunc(mapper.Dependents), builder.WithPredicates(dependencies.Changed())).
		Watches(&kustomizev1.Kustomization{}, handler.EnqueueRequestsFromMapFunc(mapper.Siblings), builder.WithPredicates(dependencies.MovedOn())).
		Watches(&kustomizev1.Kustomization{}, mapper.WhenKustomizationChanges(), builder.WithPredicates(dependencies.MovedOn())).
		WatchesRawSource(&gone.Inbox).
		Watches(&clusterv1alpha1.Cluster{}, mapper.WhenClaimsStay()).
		Watches(&workv1alpha2.ResourceBinding{}, mapper.WhenBindingChanges()).
		Watches(&workv1alpha2.ClusterResourceBinding{}, mapper.WhenBindingChanges()), nil
}
