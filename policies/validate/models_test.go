package validate_test

import (
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// A grade with fewer resources than the others is refused, wherever it stands.
func TestModelsOfDifferentLengths(t *testing.T) {
	span := func(name corev1.ResourceName, least, most int64) clusterv1alpha1.ResourceModelRange {
		return clusterv1alpha1.ResourceModelRange{Name: name, Min: *resource.NewQuantity(least, resource.DecimalSI), Max: *resource.NewQuantity(most, resource.DecimalSI)}
	}
	both := func(least, most int64) []clusterv1alpha1.ResourceModelRange {
		return []clusterv1alpha1.ResourceModelRange{span(corev1.ResourceCPU, least, most), span(corev1.ResourceMemory, least, most)}
	}
	for short := range 3 {
		c := &clusterv1alpha1.Cluster{}
		c.Name, c.Spec.SyncMode = "east", clusterv1alpha1.Push
		c.Spec.ResourceModels = []clusterv1alpha1.ResourceModel{
			{Grade: 0, Ranges: both(0, 1)}, {Grade: 1, Ranges: both(1, 2)}, {Grade: 2, Ranges: both(2, math.MaxInt64)},
		}
		c.Spec.ResourceModels[short].Ranges = c.Spec.ResourceModels[short].Ranges[:1]
		errs, _ := validate.Cluster(c, nil)
		if !strings.Contains(errs.ToAggregate().Error(), "every grade must have the same resources") {
			t.Errorf("grade %d is short: %v", short, errs)
		}
	}
}
