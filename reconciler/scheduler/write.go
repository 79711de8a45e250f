package scheduler

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// writer writes placements, guarded by the version of the binding that was decided about, and keeps its own
// writes until the cache has them.
type writer struct {
	hub     client.Client
	clock   clock.PassiveClock
	written *writecache.Cache[workv1alpha2.Binding]
}

// put writes the decision to b and returns b as it is then.
func (w writer) put(ctx context.Context, b workv1alpha2.Binding, decision placement.Decision) (workv1alpha2.Binding, error) {
	desired := b.DeepCopyObject().(workv1alpha2.Binding)
	decision.Put(desired)
	return desired, w.write(ctx, b, desired)
}

// date writes the present time into the record of b's decision. Times are in seconds: within the same
// one it writes nothing. If b has changed meanwhile, the event of that change enqueues it.
func (w writer) date(ctx context.Context, b workv1alpha2.Binding, decision placement.Decision) error {
	now := metav1.NewTime(w.clock.Now()).Rfc3339Copy()
	if !decision.Record.At.Before(&now) {
		return nil
	}
	decision.Record.At = now
	if _, err := w.put(ctx, b, decision); err != nil && !bindings.IsStale(err) {
		return fmt.Errorf("date the placement of %s: %w", client.ObjectKeyFromObject(b), err)
	}
	return nil
}

func (w writer) write(ctx context.Context, b, desired workv1alpha2.Binding) error {
	patch, some, err := bindings.Patch(b, desired)
	if err != nil || !some {
		return err
	}
	if err := w.hub.Patch(ctx, desired, patch); err != nil {
		return err
	}
	w.written.Wrote(desired)
	return nil
}
