package metrics

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/stagemetrics"
	"github.com/flotilla-io/flotilla/reconciler/execution/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/execution/owners"
	"github.com/flotilla-io/flotilla/reconciler/execution/retention"
	"github.com/flotilla-io/flotilla/reconciler/execution/skiperrors"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// Dispatch returns the metrics of passes over Works, and registers how many wait outside the queues: waiting
// returns their number by the Event of their cause.
func Dispatch(registry prometheus.Registerer, c clock.PassiveClock, waiting func() map[int]int) *stagemetrics.Stage {
	stagemetrics.Replace(registry, stagemetrics.NewWaits(prometheus.GaugeOpts{
		Name: "flotilla_works_waiting", Help: "Works that cannot be carried on before something comes to pass, by what that is: a retry, a cluster's proof, the sync of a watch, a kind, a namespace, the owner of an object, or rights",
	}, "cause", func() map[string]int {
		out := map[string]int{}
		for event, n := range waiting() {
			out[causes[event]] = n
		}
		return out
	}))
	return stagemetrics.NewStage(registry, c, prometheus.HistogramOpts{
		Name: "work_sync_workload_duration_seconds", Help: "Duration in seconds to sync the workload to a target cluster. By the result, 'error' means a work failed to sync workloads. Otherwise 'success'.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
	}, prometheus.CounterOpts{
		Name: "flotilla_dispatch_total", Help: "Looks at Works to bring them to their cluster, by result and reason: Applied, Unchanged, Removed, what is waited for, or what the cluster says",
	})
}

// causes are the values of the metrics' label for what Works wait for.
var causes = map[int]string{
	waitqueue.OnRetry: "Retry", waitqueue.OnProof: "Proof", waitqueue.OnSync: "Sync", waitqueue.OnKinds: "Kinds",
	waitqueue.OnNamespace: "Namespace", waitqueue.OnOwner: "Owner", waitqueue.OnRights: "Rights",
}

// Success returns the reason for a pass without errors: leaving says that the Work is being removed, and same that its
// record of what was applied has not changed.
func Success(leaving, same bool) string {
	switch {
	case leaving:
		return "Removed"
	case same:
		return "Unchanged"
	default:
		return "Applied"
	}
}

// waits returns an error of the class that the stage counts as waiting. Its time is not used.
func waits(reason string, err error) error { return loop.Waiting(reason, time.Second, err) }

// Reasoned returns the error of a pass with the reason by which it is counted.
func Reasoned(err error) error {
	var blocked *waitqueue.Blocked
	var owned *owners.Owned
	var refusal *impersonation.Refusal
	var unruled *retention.Fault
	switch {
	case err == nil:
		return nil
	case errors.As(err, &blocked):
		return waits(causes[blocked.Cause.Event], err)
	case errors.As(err, &owned):
		return waits(causes[waitqueue.OnOwner], err)
	case skiperrors.IsHeld(err):
		return waits("Held", err)
	case skiperrors.IsTerminating(err):
		return waits("Terminating", err)
	case errors.As(err, &unruled):
		return loop.Retry("InterpreterFailed", err)
	case errors.Is(err, members.ErrNotServed):
		return loop.Retry("NotServed", err)
	case errors.As(err, &refusal), apierrors.IsForbidden(err):
		return loop.Retry("Forbidden", err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return loop.Retry("Invalid", err)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return loop.Retry("Conflict", err)
	default:
		return err
	}
}
