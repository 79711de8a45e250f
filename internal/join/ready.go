package join

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

const readyPoll = 100 * time.Millisecond

// Ready waits until the control plane reaches the cluster and knows which kinds
// it serves, so that placements from then on consider it. A request that fails is
// retried within the time. Errors: *NotReadyError, or the error by which the
// control plane refuses to show the cluster.
func Ready(ctx context.Context, hub client.Reader, name string, within time.Duration) error {
	var last string
	var unread error
	absent := false
	err := wait.PollUntilContextTimeout(ctx, readyPoll, within, true, func(ctx context.Context) (bool, error) {
		cluster := &clusterv1alpha1.Cluster{}
		err := hub.Get(ctx, client.ObjectKey{Name: name}, cluster)
		switch {
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return false, err
		case err != nil:
			absent, unread = apierrors.IsNotFound(err), client.IgnoreNotFound(err)
			return false, nil
		}
		ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
		if ready != nil {
			last = ready.Message
		}
		return ready != nil && ready.Status == metav1.ConditionTrue && len(cluster.Status.APIEnablements) > 0, nil
	})
	if !wait.Interrupted(err) || ctx.Err() != nil {
		return err
	}
	if within > time.Second {
		within = within.Round(time.Second)
	}
	out := &NotReadyError{Cluster: name, Within: within, Next: "flotilla describe cluster " + name + " says more"}
	switch {
	case last == "" && absent:
		out.Silent, last = true, "its agent has not reported"
		out.Next = "see that it runs beside the cluster and reaches the control plane, then: flotilla status"
	case last == "" && unread != nil:
		last = unread.Error()
	case last == "":
		last = "the control plane has not looked at it yet"
	}
	out.Why = last
	return out
}

// NotReadyError is the error for a cluster that was not ready in time.
type NotReadyError struct {
	Cluster string
	Within  time.Duration
	// Why is what the control plane last found, and Next what to do.
	Why, Next string
	// Silent is true if there is no such cluster, as no agent has reported for it.
	Silent bool
}

func (e *NotReadyError) Error() string {
	return fmt.Sprintf("cluster %s is not ready after %s: %s; %s", e.Cluster, e.Within, e.Why, e.Next)
}
