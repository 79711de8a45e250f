package scheduler

import (
	"context"
	"errors"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/flotilla-io/flotilla/reconciler/decider"
	"github.com/flotilla-io/flotilla/reconciler/decider/decidertest"
)

// TestAFailedWriteGivesItsReservationBack: the capacity is then available to others.
func TestAFailedWriteGivesItsReservationBack(t *testing.T) {
	for name, refusal := range map[string]error{"the server is away": errors.New("no answer"), "it has changed meanwhile": stale()} {
		t.Run(name, func(t *testing.T) {
			b := divided("web", 6)
			hub := hubOf(cluster("m1", capacity(10)), b).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return refusal
				},
			}).Build()
			d := decider.New(hub, decider.Options{})
			var events recorder
			r := New(hub, d, &events, Options{})
			_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
			if got := decidertest.Fits(t, d); got != 10 {
				t.Errorf("room for %d, want 10", got)
			}
		})
	}
}
