package join

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// hubPlace returns where the hub runs, as it records itself; empty if it does
// not.
func hubPlace(ctx context.Context, hub client.Reader) (string, error) {
	info := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: workv1alpha2.NamespaceKarmadaSystem, Name: clusterv1alpha1.HubInfoName}
	err := hub.Get(ctx, key, info)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read where the hub is: %w", err)
	}
	return info.Data[clusterv1alpha1.HubInfoPlaceKey], nil
}

// Elsewhere returns ErrElsewhere if another copy of the hub acts in a member, as
// far as this one knows, and ErrMoving if one may: the accounts and the claim in
// the member are then that copy's.
func Elsewhere(cluster *clusterv1alpha1.Cluster) error {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	switch {
	case ready == nil || ready.Status == metav1.ConditionTrue:
		return nil
	case ready.Reason == clusterv1alpha1.ClusterElsewhereReason:
		return ErrElsewhere
	case ready.Reason == clusterv1alpha1.ClusterMovingReason:
		return ErrMoving
	}
	return nil
}

// ActsHere returns ErrElsewhere if a member's claim has another place for the hub
// than the hub itself. It is not checked where an agent acts in the member.
func ActsHere(ctx context.Context, hub client.Reader, claim *hubclaim.Claim) error {
	if claim == nil || claim.Home == nil || claim.Mode == hubclaim.Pull {
		return nil
	}
	place, err := hubPlace(ctx, hub)
	if err != nil {
		return err
	}
	if claim.Home.Elsewhere(place) {
		return ErrElsewhere
	}
	return nil
}

// here is ActsHere for the member that leaves, if the claim on it is this hub's.
// It also checks that the hub has not been set back behind what the member has
// seen of it.
func (o *UnjoinOptions) here(ctx context.Context) error {
	var member client.Reader = o.Member
	if o.Member == nil {
		if o.Witness == nil || o.Force {
			return nil
		}
		short, cancel := context.WithTimeout(ctx, witnessTimeout)
		defer cancel()
		ctx, member = short, o.Witness
	}
	if o.Hub == nil {
		return nil
	}
	mine, err := o.identity(ctx)
	if err != nil {
		return err
	}
	_, claim, err := claimOf(ctx, member)
	if err != nil && o.Member == nil {
		return nil //nolint:nilerr // a cluster that is out of reach leaves as it is
	}
	if err != nil || claim == nil || hubclaim.Judge(claim, hubclaim.Claimant{Hub: mine}) != hubclaim.Ours {
		return err
	}
	if err := ActsHere(ctx, o.Hub, claim); err != nil {
		return err
	}
	return setback.Weigh(ctx, o.Hub, o.Opened, o.Name, claim.Mark)
}

// witnessTimeout is how long a member may take to show its claim, where nobody
// requires that it answers.
const witnessTimeout = 5 * time.Second
