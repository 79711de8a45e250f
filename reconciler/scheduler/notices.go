package scheduler

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

const (
	// noticeEach is how often it is looked whether clusters say how they are left: each is written that often at most.
	noticeEach = 10 * time.Second
	// noticeStands is how long what a cluster says stands while only the numbers in it change.
	noticeStands = time.Minute
)

// notices have clusters say, in a condition, that they are left more slowly than was set, for who asks later than Events are
// kept, or cannot read them. Use from one goroutine.
type notices struct {
	hub   client.Client
	clock clock.WithTicker
	pace  *rateLimiter
	// said is what each cluster says since when, by name.
	said map[string]said
}

type said struct {
	rate float64
	at   time.Time
}

// run looks until ctx ends, for the first time when what was moved before a start has been found. What was said then is taken
// back, or said anew.
func (n *notices) run(ctx context.Context) error {
	ticker := n.clock.NewTicker(noticeEach)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		if err := n.review(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "say that clusters are left more slowly")
		}
	}
}

// review brings what the clusters say to what is so.
func (n *notices) review(ctx context.Context) error {
	slow, rate, why := n.pace.slowly(ctx)
	var list clusterv1alpha1.ClusterList
	if err := n.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list clusters: %w", err)
	}
	for i := range list.Items {
		was := &list.Items[i]
		stands := meta.FindStatusCondition(was.Status.Conditions, clusterv1alpha1.ClusterConditionEvictionSlowed)
		if stands == nil && !slow[was.Name] || stands != nil && slow[was.Name] && n.holds(was.Name, rate, stands.Message == why) {
			continue
		}
		updated := was.DeepCopy()
		n.setCondition(updated, slow[was.Name], rate, why)
		err := n.hub.Status().Patch(ctx, updated, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("write the status of cluster %s: %w", was.Name, err)
		}
	}
	return nil
}

// holds reports whether what a cluster says is near enough to what is so.
func (n *notices) holds(cluster string, rate float64, same bool) bool {
	s, known := n.said[cluster]
	return same || known && s.rate == rate && n.clock.Since(s.at) < noticeStands
}

func (n *notices) setCondition(c *clusterv1alpha1.Cluster, slow bool, rate float64, why string) {
	if !slow {
		delete(n.said, c.Name)
		meta.RemoveStatusCondition(&c.Status.Conditions, clusterv1alpha1.ClusterConditionEvictionSlowed)
		return
	}
	now := n.clock.Now()
	n.said[c.Name] = said{rate, now}
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionEvictionSlowed, Status: metav1.ConditionTrue, Reason: clusterv1alpha1.EvictionSlowedReason,
		Message: why, LastTransitionTime: metav1.NewTime(now.UTC().Truncate(time.Second)),
	})
}
