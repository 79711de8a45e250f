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

// writer writes placements, each on the version that was decided about, and knows what it
// wrote last.
type writer struct {
	hub     client.Client
	clock   clock.PassiveClock
	written *writecache.Cache[workv1alpha2.Binding]
}

// put writes decision on b and returns what b is then.
func (w writer) put(ctx context.Context, b workv1alpha2.Binding, decision placement.Decision) (workv1alpha2.Binding, error) {
	desired := b.DeepCopyObject().(workv1alpha2.Binding)
	decision.Put(desired)
	return desired, w.write(ctx, b, desired)
}

// date writes that the decision of b's record was come to again just now. Within one
// second there is nothing to write; where b has changed meanwhile, its event comes.
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
