package taintpolicy

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-io/flotilla/policies/taints"
)

// again is how often the policy is tried to be made.
const again = 5 * time.Second

// makeLost makes the policy where there is none of its name.
func makeLost(ctx context.Context, hub client.Client) error {
	err := wait.PollUntilContextCancel(ctx, again, true, func(ctx context.Context) (bool, error) {
		err := hub.Create(ctx, taints.Lost())
		if err != nil && !apierrors.IsAlreadyExists(err) {
			log.FromContext(ctx).Error(err, "make the ClusterTaintPolicy of lost clusters; it is tried again")
			return false, nil
		}
		return true, nil
	})
	if ctx.Err() != nil {
		return nil // the loops end
	}
	return err
}
