package cluster

import (
	"context"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// outcome is an answer to whether a member is ready, as its condition shows it.
type outcome struct {
	ready           bool
	reason, message string
}

// The answers that a probe can give.
var (
	well        = outcome{true, clusterv1alpha1.ClusterReadyReason, clusterv1alpha1.ClusterReadyMessage}
	unwell      = outcome{false, clusterv1alpha1.ClusterNotReadyReason, clusterv1alpha1.ClusterNotReadyMessage}
	unreachable = outcome{false, clusterv1alpha1.ClusterNotReachableReason, clusterv1alpha1.ClusterNotReachableMessage}
)

// reasonIdentityMismatch goes with Ready False: what answers is another cluster
// than the one that was registered.
const reasonIdentityMismatch = "IdentityMismatch"

// probe asks a member how it is: at /readyz, or at /healthz where that is not
// served.
func probe(ctx context.Context, member rest.Interface) outcome {
	code, reached := ask(ctx, member, "/readyz")
	if code == http.StatusNotFound {
		code, reached = ask(ctx, member, "/healthz")
	}
	switch {
	case !reached:
		return unreachable
	case code != http.StatusOK:
		return unwell
	default:
		return well
	}
}

// ask returns the status of an answer, and whether there was one.
func ask(ctx context.Context, member rest.Interface, path string) (code int, reached bool) {
	member.Get().AbsPath(path).MaxRetries(0).Do(ctx).StatusCode(&code)
	return code, code != 0
}

// threshold turns an answer only when the other one has stood for a while, so
// that a member that flaps does not take its workloads along.
type threshold struct {
	failure, success time.Duration

	shown outcome
	since time.Time // when the answer began to differ from shown; zero: it does not
}

// newThreshold starts from what the hub says about a member: one that was ready
// stays so until it has failed for long enough, and any other is taken for what
// it is first seen as.
func newThreshold(failure, success time.Duration, wasReady bool) *threshold {
	t := &threshold{failure: failure, success: success}
	if wasReady {
		t.shown = well
	}
	return t
}

// turn returns the answer that counts, given the one that was just received.
func (t *threshold) turn(now time.Time, is outcome) outcome {
	if t.shown == (outcome{}) || is.ready == t.shown.ready {
		t.shown, t.since = is, time.Time{}
		return t.shown
	}
	if t.since.IsZero() {
		t.since = now
	}
	limit := t.success
	if t.shown.ready {
		limit = t.failure
	}
	if now.Sub(t.since) >= limit {
		t.shown, t.since = is, time.Time{}
	}
	return t.shown
}
