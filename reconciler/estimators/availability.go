package estimators

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
)

// availability reports that the estimator of a cluster gives no answers, and that it does again. Until then nobody would notice: what
// the cluster reports counts instead.
type availability struct {
	events loop.Recorder // nil: nobody is told

	mu       sync.Mutex
	failures map[string]int  // questions in a row without an answer, by cluster
	reported map[string]bool // that it gives none
}

// observe takes the outcome of a question to the estimator of a cluster. One that is late is reported with the third question in a row,
// as its connection may be made just now; one that errs, with the first.
func (a *availability) observe(cluster string, uid types.UID, err error) {
	if a.events == nil || errors.Is(err, ErrResting) || errors.Is(err, context.Canceled) {
		return
	}
	about := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster, UID: uid}}
	switch before, now := a.count(cluster, err); {
	case now && !before:
		a.events.Event(about, corev1.EventTypeWarning, clusterv1alpha1.EventReasonEstimatorUnavailable,
			fmt.Sprintf("Its estimator does not say what fits, so that what the cluster said or reports itself counts: %s", reasonOf(err)))
	case before && !now:
		a.events.Event(about, corev1.EventTypeNormal, clusterv1alpha1.EventReasonEstimatorAvailable, "Its estimator says what fits again")
	}
}

// count returns whether it was reported that there are no answers, and whether it is by now.
func (a *availability) count(cluster string, err error) (before, now bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before = a.reported[cluster]
	if err == nil {
		delete(a.failures, cluster)
		delete(a.reported, cluster)
		return before, false
	}
	late := errors.Is(err, context.DeadlineExceeded)
	if a.failures[cluster]++; before || late && a.failures[cluster] < failureThreshold {
		return before, before
	}
	a.reported[cluster] = true
	return before, true
}

func (a *availability) forget(cluster string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.failures, cluster)
	delete(a.reported, cluster)
}

// reasonOf returns why there is no answer, without what gRPC says of itself.
func reasonOf(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}
