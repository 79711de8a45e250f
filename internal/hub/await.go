package hub

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// awaitEvery is how often Await sends a request to the hub.
	awaitEvery = time.Second
	// awaitAnswer is how long it waits for a response.
	awaitAnswer = 5 * time.Second
	// reportPeriod is how often it logs that it still waits, and why.
	reportPeriod = time.Minute
)

// Await returns nil once the hub answers that it is ready, or ctx's error. It has
// no timeout of its own, as the caller can do nothing without the hub. A hub that
// refuses the credentials counts as ready: the caller's next request returns that
// error. Why it waits is logged at once to the logger of ctx, and then once a
// minute.
func Await(ctx context.Context, cfg *rest.Config) error {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = awaitAnswer
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("set up the connection to the control plane: %w", err)
	}
	w := waiting{clock: clock.RealClock{}, probe: func(ctx context.Context) error {
		err := client.RESTClient().Get().AbsPath("/readyz").MaxRetries(0).Do(ctx).Error()
		if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
			return nil
		}
		return err
	}, log: logr.FromContextOrDiscard(ctx).WithValues("server", cfg.Host)}
	return w.await(ctx)
}

// waiting polls the hub until it is ready.
type waiting struct {
	clock clock.WithTicker
	probe func(context.Context) error
	log   logr.Logger
}

func (w waiting) await(ctx context.Context) error {
	ticker := w.clock.NewTicker(awaitEvery)
	defer ticker.Stop()
	begin := w.clock.Now()
	for reported := (time.Time{}); ; {
		why := w.probe(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if why == nil {
			return nil
		}
		if now := w.clock.Now(); reported.IsZero() || now.Sub(reported) >= reportPeriod {
			w.log.Info("Waiting for the control plane to be ready", "for", now.Sub(begin).Round(time.Second).String(), "why", why.Error())
			reported = now
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C():
		}
	}
}
