package cluster

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// reasonUnclaimed: the member refuses the hub's claim.
const reasonUnclaimed = "NotWritable"

// unclaimedMessage explains the consequence; the reason follows.
const unclaimedMessage = "the claim of this hub cannot be written to the cluster's namespace kube-system, so that nothing keeps another hub from it: "

// claimed returns the outcome for a member that belongs to another hub.
func claimed(err error) outcome {
	return outcome{reason: clusterv1alpha1.ClusterClaimedReason, message: err.Error() + "; nothing is written there: unjoin it here, or join it again with --take-over"}
}

// claimant is the hub in the form in which members record it.
type claimant struct {
	hub, live client.Reader
	opts      *Options

	mu    sync.Mutex
	found string // where agents find the hub; empty: not read yet
}

// identity returns the hub that claims the members. A hub without a known identity claims
// nothing.
func (c *claimant) identity(ctx context.Context, cluster string) (func() hubclaim.Claimant, error) {
	if c.opts.Claimant != nil {
		return func() hubclaim.Claimant { return c.opts.Claimant(cluster) }, nil
	}
	if c.opts.Own != "" {
		return nil, nil
	}
	system := &corev1.Namespace{}
	err := c.hub.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the identity of the hub: %w", err)
	}
	is := hubclaim.Claimant{Hub: string(system.UID), Cluster: cluster, Address: c.address(ctx), Mode: hubclaim.Push, Place: c.opts.Place}
	return func() hubclaim.Claimant { return is }, nil
}

// address reads once the hub's URL for agents, from its ConfigMap cluster-info;
// empty if it has none.
func (c *claimant) address(ctx context.Context) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found != "" {
		return c.found
	}
	info := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: metav1.NamespacePublic, Name: bootstrapapi.ConfigMapClusterInfo}
	if err := c.live.Get(ctx, key, info); err != nil {
		return ""
	}
	config, err := clientcmd.Load([]byte(info.Data[bootstrapapi.KubeConfigKey]))
	if err != nil {
		return ""
	}
	for _, entry := range config.Clusters {
		c.found = entry.Server
	}
	return c.found
}

// release removes the claim from a member that was unjoined. One that cannot be reached keeps the
// claim: the next hub has to take it over explicitly.
func (c *claimant) release(ctx context.Context, member *members.Member) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.ProbeTimeout)
	defer cancel()
	if err := member.Release(ctx); err != nil {
		log.FromContext(ctx).Info("The claim stays in the cluster that has left", "reason", err.Error())
	}
}

// Reasons of the condition Held.
const (
	reasonSetBack   = "StoreSetBack"
	reasonNotBehind = "NotBehind"
)

// waits sets the condition Held: the hub does so for clusters in
// pull mode, too, whose agents read it there. Of one in push mode it also shows that
// it was compared, and does not wait as others do.
func (o *Options) waits(s *state, events loop.Recorder) {
	if o.Own != "" {
		return
	}
	var hold *hubclaim.Hold
	if o.Hold != nil {
		hold = o.Hold()
	}
	was := meta.FindStatusCondition(s.status.Conditions, clusterv1alpha1.ClusterConditionHeld)
	set := func(status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&s.status.Conditions, metav1.Condition{
			Type: clusterv1alpha1.ClusterConditionHeld, Status: status, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(o.Clock.Now()),
		})
	}
	switch {
	case hold.Of(s.cluster.Name) != nil:
		if was == nil || was.Status != metav1.ConditionTrue {
			events.Event(s.cluster, corev1.EventTypeWarning, reasonSetBack, hold.Describe())
		}
		set(metav1.ConditionTrue, reasonSetBack, hold.Describe())
	case hold != nil && s.cluster.Spec.SyncMode == clusterv1alpha1.Push:
		set(metav1.ConditionFalse, reasonNotBehind, hold.Spares())
	case was != nil:
		meta.RemoveStatusCondition(&s.status.Conditions, clusterv1alpha1.ClusterConditionHeld)
	}
}
