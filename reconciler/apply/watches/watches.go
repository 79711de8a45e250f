// Package watches has the watches that start runs of Kustomizations.
//
// In goes what keeps track of runs; out comes a controller's builder that watches Kustomizations, their sources, and what else
// concerns them. It reads what wakes reads, and writes nothing.
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
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/apply/awaited"
	"github.com/flotilla-io/flotilla/reconciler/apply/dependencies"
	"github.com/flotilla-io/flotilla/reconciler/apply/references"
	"github.com/flotilla-io/flotilla/reconciler/apply/suspended"
	"github.com/flotilla-io/flotilla/reconciler/apply/wakes"
	"github.com/flotilla-io/flotilla/reconciler/origins"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// Deps are what the watches tell.
type Deps struct {
	// Hub reads from the cache.
	Hub client.Client
	// States are what is known of runs.
	States wakes.States
	// Suspended keeps the statuses of suspended Kustomizations.
	Suspended *suspended.Keeper
	// Templates reports which templates others delete; nil for none.
	Templates wakes.Templates
	Clock     clock.PassiveClock
	// Own let the events of Kustomizations pass.
	Own []predicate.Predicate
}

// Of returns a builder of the loop's controller with all watches.
func Of(ctx context.Context, mgr ctrl.Manager, deps Deps) (*builder.Builder, error) {
	if err := dependencies.Index(ctx, mgr); err != nil {
		return nil, err
	}
	wake := wakes.Wakes{Hub: deps.Hub, States: deps.States}
	gone := &wakes.Deletions{Wakes: wake, Scheme: deps.Hub.Scheme(), Suspended: deps.Suspended}
	if deps.Templates != nil {
		deps.Templates.Listen(templatestore.Listener{Changed: gone.Changed})
	}
	if err := references.Watch(mgr, gone.Referred); err != nil {
		return nil, err
	}
	if err := wake.WatchClusters(mgr, &gone.Inbox, deps.Clock); err != nil {
		return nil, err
	}
	if err := awaited.New(wake, &gone.Inbox).Register(mgr); err != nil {
		return nil, err
	}
	loop := ctrl.NewControllerManagedBy(mgr)
	for _, kind := range wakes.Kinds() {
		loop.Watches(kind, gone.OfKind())
	}
	for _, kind := range origins.Kinds() {
		loop.Watches(kind.New(), handler.EnqueueRequestsFromMapFunc(wake.UsersOf), builder.WithPredicates(wakes.NewArtifact()))
	}
	return loop.
		For(&kustomizev1.Kustomization{}, builder.WithPredicates(append(deps.Own, wakes.Asked())...)).
		Watches(&kustomizev1.Kustomization{}, handler.EnqueueRequestsFromMapFunc(wake.Dependents), builder.WithPredicates(dependencies.Changed())).
		Watches(&kustomizev1.Kustomization{}, handler.EnqueueRequestsFromMapFunc(wake.Siblings), builder.WithPredicates(dependencies.MovedOn())).
		Watches(&kustomizev1.Kustomization{}, wake.WhenKustomizationChanges(), builder.WithPredicates(dependencies.MovedOn())).
		WatchesRawSource(&gone.Inbox).
		Watches(&clusterv1alpha1.Cluster{}, wake.WhenClaimsStay()).
		Watches(&workv1alpha2.ResourceBinding{}, wake.WhenBindingChanges()).
		Watches(&workv1alpha2.ClusterResourceBinding{}, wake.WhenBindingChanges()), nil
}
