package reconciler

import (
	"context"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/template"
)

// Claims finds out which policy will carry an object that is being made, so that the
// write that makes it can say so. The zero value knows of none; Register gives
// it to the template loop, and it answers once the loop's caches are complete.
type Claims struct {
	loop atomic.Pointer[template.Reconciler]
}

// Of returns the claim of the policy that will carry the object, and false if
// none will, or that is not known yet.
func (c *Claims) Of(ctx context.Context, gvk schema.GroupVersionKind, obj metav1.Object) (propagation.Claim, bool) {
	loop := c.loop.Load()
	if loop == nil {
		return propagation.Claim{}, false
	}
	return loop.Predict(ctx, gvk, obj)
}

// during answers by the loop as long as the manager runs. A replica that does
// not lead knows as much as the one that does.
func (c *Claims) during(loop *template.Reconciler) manager.Runnable {
	return everywhere(func(ctx context.Context) error {
		c.loop.Store(loop)
		defer c.loop.Store(nil)
		<-ctx.Done()
		return nil
	})
}

// everywhere runs on every replica, after the caches are complete.
type everywhere func(ctx context.Context) error

// Start implements manager.Runnable.
func (f everywhere) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }
