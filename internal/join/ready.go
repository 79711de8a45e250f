package join

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

const readyPoll = 100 * time.Millisecond

// Ready waits until the control plane reaches the cluster and knows what it
// serves, so that what is placed from then on finds it. The error says what
// the control plane last found.
func Ready(ctx context.Context, hub client.Reader, name string, within time.Duration) error {
	last := "the control plane has not looked at it yet"
	err := wait.PollUntilContextTimeout(ctx, readyPoll, within, true, func(ctx context.Context) (bool, error) {
		cluster := &clusterv1alpha1.Cluster{}
		if err := hub.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
		if ready != nil {
			last = ready.Message
		}
		return ready != nil && ready.Status == metav1.ConditionTrue && len(cluster.Status.APIEnablements) > 0, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("cluster %s is not ready after %s: %s", name, within, last)
	}
	return err
}
