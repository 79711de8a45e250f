package whatif

import (
	"errors"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// unlimited is how many pods fit in a cluster of which only other amounts are known.
const unlimited = math.MaxInt32

// resized returns a cluster with another capacity. What runs there takes as much of it as before. The nodes that are counted by
// their size become more or fewer as the scarcest of the resources does.
func resized(c *clusterv1alpha1.Cluster, e Event) (*clusterv1alpha1.Cluster, error) {
	out := changed(c)
	summary := c.Status.ResourceSummary.DeepCopy()
	if summary == nil && e.room == nil {
		return nil, errors.New("the cluster does not report what it has: name amounts, such as cpu=100,memory=200Gi")
	}
	if summary == nil {
		summary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(unlimited, resource.DecimalSI)}}
	}
	share := e.percent / 100
	if e.room == nil {
		for name, q := range summary.Allocatable {
			summary.Allocatable[name] = times(q, share)
		}
	} else {
		share = math.Inf(1)
		if summary.Allocatable == nil {
			summary.Allocatable = corev1.ResourceList{}
		}
		for name, q := range e.room {
			was := summary.Allocatable[name]
			if had := was.AsApproximateFloat64(); had > 0 {
				share = min(share, q.AsApproximateFloat64()/had)
			}
			summary.Allocatable[name] = q.DeepCopy()
		}
	}
	for i := range summary.AllocatableModelings {
		if n := &summary.AllocatableModelings[i].Count; !math.IsInf(share, 1) {
			*n = int(float64(*n) * share)
		}
	}
	out.Status.ResourceSummary = summary
	return out, nil
}

// times returns a share of a quantity.
func times(q resource.Quantity, share float64) resource.Quantity {
	if milli := q.MilliValue(); milli < math.MaxInt64/mostPercent {
		return *resource.NewMilliQuantity(int64(float64(milli)*share), q.Format)
	}
	return *resource.NewQuantity(int64(min(q.AsApproximateFloat64()*share, math.MaxInt64/2)), q.Format)
}
