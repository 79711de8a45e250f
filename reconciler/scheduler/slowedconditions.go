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
	// conditionInterval is how often the conditions are compared with the rate limiter: no Cluster is written more often.
	conditionInterval = 10 * time.Second
	// conditionStands is how long a condition is kept while only the numbers in its message change.
	conditionStands = time.Minute
)

// slowedConditions keeps the condition EvictionSlowed on Clusters whose evictions run below the configured rate. Events
// report the same, but expire, and not everybody may read them. Not safe for concurrent use.
type slowedConditions struct {
	hub     client.Client
	clock   clock.WithTicker
	limiter *rateLimiter
	// reported is the rate that the condition of each Cluster reports, and when it was written, by name.
	reported map[string]report
}

type report struct {
	rate float64
	at   time.Time
}

// run updates the conditions until ctx ends. The first update waits for one interval, until the moves from before the
// start have been found: else a condition from then would be removed too early.
func (n *slowedConditions) run(ctx context.Context) error {
	ticker := n.clock.NewTicker(conditionInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		if err := n.update(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "update the condition EvictionSlowed of clusters")
		}
	}
}

// update sets and removes the condition on all Clusters.
func (n *slowedConditions) update(ctx context.Context) error {
	slow, rate, why := n.limiter.slowly(ctx)
	var list clusterv1alpha1.ClusterList
	if err := n.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list clusters: %w", err)
	}
	for i := range list.Items {
		was := &list.Items[i]
		stands := meta.FindStatusCondition(was.Status.Conditions, clusterv1alpha1.ClusterConditionEvictionSlowed)
		if stands == nil && !slow[was.Name] || stands != nil && slow[was.Name] && n.closeEnough(was.Name, rate, stands.Message == why) {
			continue
		}
		updated := was.DeepCopy()
		n.set(updated, slow[was.Name], rate, why)
		err := n.hub.Status().Patch(ctx, updated, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("write the status of cluster %s: %w", was.Name, err)
		}
	}
	return nil
}

// closeEnough reports whether a condition need not be written although its numbers may have changed.
func (n *slowedConditions) closeEnough(cluster string, rate float64, same bool) bool {
	s, known := n.reported[cluster]
	return same || known && s.rate == rate && n.clock.Since(s.at) < conditionStands
}

func (n *slowedConditions) set(c *clusterv1alpha1.Cluster, slow bool, rate float64, why string) {
	if !slow {
		delete(n.reported, c.Name)
		meta.RemoveStatusCondition(&c.Status.Conditions, clusterv1alpha1.ClusterConditionEvictionSlowed)
		return
	}
	now := n.clock.Now()
	n.reported[c.Name] = report{rate, now}
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionEvictionSlowed, Status: metav1.ConditionTrue, Reason: clusterv1alpha1.EvictionSlowedReason,
		Message: why, LastTransitionTime: metav1.NewTime(now.UTC().Truncate(time.Second)),
	})
}
