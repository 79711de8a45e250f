// Package remotecluster decides what may be deleted for Kustomizations with spec.kubeConfig, whose objects are in clusters outside of the fleet.
//
// In go what leaves a revision, and Kustomizations that are deleted; out comes whether it may go, and how far the deletion has come.
// There no policy carries anything, nobody takes anything over, and nothing is switched. It deletes in the cluster that the inventory
// is of, with the rights of the kubeconfig, and writes nothing on the control plane.
package remotecluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/cascadingdeletion"
	"github.com/flotilla-io/flotilla/reconciler/apply/finalization"
	"github.com/flotilla-io/flotilla/reconciler/apply/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/target"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// ReasonLeftBehind is the reason of the event about objects in a cluster that spec.kubeConfig does not lead to any more.
const ReasonLeftBehind = "LeftBehind"

// mostNamed is how many objects a text names.
const mostNamed = 3

// Removal is what leaves a revision.
type Removal struct {
	Owned, Deleted, Desired []inventory.Entry
	// May is what people have allowed to be deleted, and Revision the name of the revision.
	May      inventory.Allowance
	Revision string
	// Stands says that the revision is applied already, and that an edit of the Kustomization removes the objects.
	Stands bool
}

// Check returns an error of class loop.ClassStalled if people have to allow a removal. What is precious has to be named, whether or
// not anything is in it: nobody looks into the namespaces of a cluster outside of the fleet.
func (r Removal) Check(brake inventory.Brake) error {
	var lost []inventory.Loss
	dropped := inventory.WithoutRegenerated(r.Deleted, r.Desired)
	for _, e := range dropped {
		lost = append(lost, inventory.Loss{ID: e.ID, Precious: inventory.PreciousKind(e.ID.GroupKind) != ""})
	}
	if len(lost) == 0 {
		return nil
	}
	inventory.FlagLast(lost, r.Desired)
	err := brake.Check(len(r.Owned), lost, r.May, r.Revision)
	if refusal := (*inventory.Refusal)(nil); errors.As(err, &refusal) {
		refusal.Stands = r.Stands
	}
	if err == nil {
		err = cascadingdeletion.Homeless(dropped, r.Desired, r.Revision, r.Stands)
	}
	if err != nil {
		return loop.Stalled(inventory.ReasonPruneBlocked, err)
	}
	return nil
}

// Left returns a text about the objects that stay where they are, as the Kustomization applies elsewhere from now on; empty for none.
func Left(status kustomizev1.KustomizationStatus, now inventory.Place) string {
	before := inventory.PlaceOf(status)
	owned, err := inventory.Read(status.Inventory)
	if err != nil || len(owned) == 0 || before.Is(now) {
		return ""
	}
	beyond := ""
	if before == (inventory.Place{}) {
		beyond = ", and wherever policies carry them"
	}
	return fmt.Sprintf("%s stay %s%s, as this Kustomization applies %s from now on: delete them there, or let another Kustomization take them", described(owned), before, beyond, now)
}

// described names objects, of which there may be one.
func described(owned []inventory.Entry) string {
	return fmt.Sprintf("%d of its objects (%s)", len(owned), inventory.First(inventory.IDsOf(owned), mostNamed))
}

// Explained returns an error of what was done in a cluster, with the name of that. What the account there may not even read is Forbidden.
func Explained(ks *kustomizev1.Kustomization, at *target.Target, err error) error {
	if outcome := (*loop.Error)(nil); apierrors.IsForbidden(err) && !errors.As(err, &outcome) {
		err = loop.Waiting(applier.ReasonForbidden, intervals.Retry(ks), err)
	}
	return at.Explain(err)
}

// Remover deletes what Kustomizations leave behind in clusters outside of the fleet.
type Remover struct {
	Targets *target.Targets
	Actors  *impersonation.Actors
	// Live reads the hub without a cache.
	Live client.Reader
}

// End deletes what the inventory of a Kustomization holds. It waits for a cluster that cannot be reached, as whoever deletes the
// Kustomization expects its objects to go, unless the namespace of the Kustomization goes with the Secret. What is in another cluster
// than the one that spec.kubeConfig leads to now stays, and so does all if the account is gone.
func (r Remover) End(ctx context.Context, ks *kustomizev1.Kustomization, now time.Time) (finalization.Ending, error) {
	out, place := finalization.Ending{Gone: true}, inventory.PlaceOf(ks.Status)
	owned, err := inventory.In(ks, place)
	if err != nil || len(owned) == 0 {
		return out, err
	}
	if out.Actor, err = r.Actors.Of(ks); err != nil {
		return out, err
	}
	orphaned, err := impersonation.Gone(ctx, r.Live, out.Actor.Identity)
	if err != nil {
		return out, err
	}
	stay := func(why string) (finalization.Ending, error) {
		out.Stays = fmt.Sprintf("%s stay %s: %s", described(owned), place, why)
		return out, nil
	}
	switch {
	case orphaned:
		return stay(fmt.Sprintf("the service account %s is gone", out.Actor.ServiceAccount))
	case ks.Spec.KubeConfig == nil:
		return stay("spec.kubeConfig is gone")
	}
	at, err := r.Targets.Of(ctx, ks, out.Actor)
	if err != nil {
		if going, lookup := r.namespaceGoes(ctx, ks.Namespace); lookup == nil && going {
			return stay(err.Error())
		}
		out.Gone = false
		return out, loop.Waiting(meta.PruneFailedReason, intervals.Retry(ks), keeps(r.Actors.Explained(ctx, out.Actor, err), owned))
	}
	if !at.Is(place) {
		return stay("spec.kubeConfig leads to another cluster by now")
	}
	return r.remove(ctx, ks, at, owned, out, now)
}

// remove deletes what is owned in a cluster.
func (r Remover) remove(ctx context.Context, ks *kustomizev1.Kustomization, at *target.Target, owned []inventory.Entry, out finalization.Ending, now time.Time) (finalization.Ending, error) {
	out.Gone = false
	key := client.ObjectKeyFromObject(ks)
	seen, err := at.Applier.Observe(ctx, key, owned)
	if err != nil {
		return out, loop.Waiting(meta.PruneFailedReason, intervals.Retry(ks), keeps(at.Explain(err), owned))
	}
	doomed := applier.PrunableRemote(owned, seen)
	err = at.Applier.Prune(ctx, key, at, slices.Clone(doomed), seen)
	if refusal := (*applier.Refusal)(nil); errors.As(err, &refusal) {
		out.Stays = fmt.Sprintf("%d objects stay: %v", len(refusal.Findings), at.Explain(err))
	} else if err != nil {
		return out, loop.Waiting(meta.PruneFailedReason, intervals.Retry(ks), keeps(at.Explain(err), owned))
	}
	out.Gone = ks.GetDeletionPolicy() != kustomizev1.DeletionPolicyWaitForTermination || out.Stays != "" ||
		len(doomed) == 0 && !seen.AnyDeleting(owned) || now.After(ks.DeletionTimestamp.Add(ks.GetTimeout()))
	return out, nil
}

// keeps says of an error what it keeps, and how to end without.
func keeps(err error, owned []inventory.Entry) error {
	return fmt.Errorf("%w; %s wait to be deleted there: to leave them where they are, set spec.deletionPolicy to Orphan", err, described(owned))
}

// namespaceGoes reports whether a namespace is being deleted.
func (r Remover) namespaceGoes(ctx context.Context, name string) (bool, error) {
	var ns corev1.Namespace
	err := r.Live.Get(ctx, client.ObjectKey{Name: name}, &ns)
	return err == nil && ns.DeletionTimestamp != nil, client.IgnoreNotFound(err)
}
