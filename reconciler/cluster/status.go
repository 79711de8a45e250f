package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/loop"
)

// describe computes the status from what was seen. What could not be read
// stays as it was.
func (r *Reconciler) describe(_ context.Context, s *state) (loop.Next, error) {
	s.status = s.cluster.Status.DeepCopy()
	if s.seen == nil {
		return loop.Next{}, nil
	}
	now := metav1.NewTime(r.opts.Clock.Now())
	set := func(c metav1.Condition) {
		c.LastTransitionTime = now // no generation: what is seen of a member does not come of its Cluster, and taints would cost a write
		meta.SetStatusCondition(&s.status.Conditions, c)
	}
	answers := ready(s.seen.outcome)
	set(answers)
	s.turned()
	r.opts.waits(s, r.events)
	if s.seen.unclaimed != "" {
		set(metav1.Condition{Type: clusterv1alpha1.ClusterConditionClaimed, Status: metav1.ConditionFalse, Reason: reasonUnclaimed, Message: unclaimedMessage + s.seen.unclaimed})
	} else {
		meta.RemoveStatusCondition(&s.status.Conditions, clusterv1alpha1.ClusterConditionClaimed)
	}
	if s.seen.unread != "" && answers.Status == metav1.ConditionTrue { // for a member that is away, Ready is enough
		set(metav1.Condition{Type: clusterv1alpha1.ClusterConditionObjectsUnread, Status: metav1.ConditionTrue, Reason: clusterv1alpha1.ObjectsUnreadReason, Message: s.seen.unread})
	} else {
		meta.RemoveStatusCondition(&s.status.Conditions, clusterv1alpha1.ClusterConditionObjectsUnread)
	}
	if s.seen.version == "" && s.seen.gap == "" {
		return loop.Next{}, nil
	}
	if s.seen.version != "" {
		s.status.KubernetesVersion = s.seen.version
		s.status.APIEnablements = s.seen.kinds
	}
	set(completeness(s.status.APIEnablements, s.seen.gap))
	if s.seen.Nodes != nil {
		s.status.NodeSummary = s.seen.Nodes
		resources := *s.seen.Resources
		if !equality.Semantic.DeepEqual(s.seen.Models, r.opts.models(s.cluster)) {
			resources.AllocatableModelings = nil // counted by models that no longer exist
		}
		s.status.ResourceSummary = &resources
	}
	return loop.Next{}, nil
}

// turned dates a condition Ready that is no longer True by when the member failed, which was
// before that was sure. One that is True again is so from now on: what its loss put on the
// cluster, or moves off it, is only undone from here.
func (s *state) turned() {
	is := meta.FindStatusCondition(s.status.Conditions, clusterv1alpha1.ClusterConditionReady)
	was := readiness(s.cluster)
	if is.Status == metav1.ConditionTrue || s.seen.began.IsZero() || was != nil && (was.Status == is.Status || s.seen.began.Before(was.LastTransitionTime.Time)) {
		return
	}
	is.LastTransitionTime = metav1.NewTime(s.seen.began)
}

// readiness returns the cluster's condition Ready; nil if it has none.
func readiness(cluster *clusterv1alpha1.Cluster) *metav1.Condition {
	return meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}

func ready(o outcome) metav1.Condition {
	status := metav1.ConditionFalse
	if o.ready {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: status, Reason: o.reason, Message: o.message}
}

// completeness reports whether these are all the kinds that the member serves. Gap
// says what could not be read.
func completeness(kinds []clusterv1alpha1.APIEnablement, gap string) metav1.Condition {
	c := metav1.Condition{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionFalse}
	switch {
	case len(kinds) == 0:
		c.Reason, c.Message = clusterv1alpha1.APIEnablementsEmptyReason, cmp.Or(gap, "the cluster serves no kinds")
	case gap != "":
		c.Reason, c.Message = clusterv1alpha1.APIEnablementsPartialReason, gap+": what was read before stands"
	default:
		c.Status = metav1.ConditionTrue
		c.Reason, c.Message = clusterv1alpha1.APIEnablementsCompleteReason, "all kinds were read from the cluster"
	}
	return c
}

// report writes the status, if it changed.
func (r *Reconciler) report(ctx context.Context, s *state) (loop.Next, error) {
	if equality.Semantic.DeepEqual(&s.cluster.Status, s.status) {
		return loop.Next{}, nil
	}
	updated := s.cluster.DeepCopy()
	updated.Status = *s.status
	// Conditions are a list that others write to, too: what was read must stand.
	patch := client.MergeFrom(s.cluster)
	if !equality.Semantic.DeepEqual(s.cluster.Status.Conditions, s.status.Conditions) {
		patch = client.MergeFromWithOptions(s.cluster, client.MergeFromWithOptimisticLock{})
	}
	if err := r.hub.Status().Patch(ctx, updated, patch); err != nil {
		switch {
		case apierrors.IsNotFound(err):
			return loop.Next{}, nil
		case apierrors.IsConflict(err):
			return loop.Next{After: stale}, nil
		case errors.Is(err, hub.ErrAway): // the hub may be back without an event of this cluster
			return loop.Next{After: r.opts.Period}, nil
		}
		return loop.Next{}, fmt.Errorf("write the status of cluster %s: %w", s.cluster.Name, err)
	}
	if was, is := readiness(s.cluster), readiness(updated); is != nil && (was == nil || was.Status != is.Status || was.Reason != is.Reason) {
		log.FromContext(ctx).Info("Cluster turned", "ready", is.Status, "reason", is.Reason)
		turned := was != nil && was.Status != is.Status
		switch {
		case turned && is.Status == metav1.ConditionTrue:
			r.events.Event(updated, corev1.EventTypeNormal, is.Reason, is.Message)
		case turned, is.Reason == clusterv1alpha1.ClusterClaimedReason:
			r.events.Event(updated, corev1.EventTypeWarning, is.Reason, is.Message)
		}
	}
	if s.seen == nil {
		r.heartbeats.last(s.cluster.Name, readiness(updated)) // signs count from this judgement on
	}
	r.wrote.Wrote(updated)
	s.cluster = updated
	return loop.Next{}, nil
}
