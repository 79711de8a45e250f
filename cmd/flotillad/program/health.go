package program

import (
	"context"
	"errors"
	"net/http"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// syncTimeout is how long a request for readiness waits for caches: probes wait for a second by default.
const syncTimeout = 500 * time.Millisecond

// checkHealth has the manager answer at its address for health: it is healthy while it answers, and
// ready once its caches have what the control plane has, also while another replica leads.
func checkHealth(mgr ctrl.Manager) error {
	return errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", synced(mgr.GetCache())))
}

func synced(caches cache.Cache) healthz.Checker {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), syncTimeout)
		defer cancel()
		if !caches.WaitForCacheSync(ctx) {
			return errors.New("what the control plane has is not all read yet")
		}
		return nil
	}
}
