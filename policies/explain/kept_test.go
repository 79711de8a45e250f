package explain_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/explain"
)

// TestWhatIsMovedIsTold: why a cluster is left and since when, and where to and when the template returns.
func TestWhatIsMovedIsTold(t *testing.T) {
	in := overQuota(t)
	b := in.Binding.(*workv1alpha2.ResourceBinding)
	b.Annotations[workv1alpha2.SchedulingDecisionAnnotation] = `{"reason":"Success","at":"2026-01-01T11:00:00Z","left":[{"cluster":"c-009","well":"2026-01-01T11:59:50Z"}]}`
	b.Spec.Failover = &policyv1alpha1.FailoverBehavior{FailBackSeconds: ptr.To[int32](30)}
	b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
		FromCluster: "c-009", Producer: "TaintManager", Reason: "TaintUntolerated", Message: "untolerated taint {drill:NoExecute}", CreationTimestamp: ptr.To(metav1.NewTime(noon.Add(-time.Minute))),
	}}
	text := explain.Explain(in).Text(explain.TextOptions{})
	for _, want := range []string{
		"\n  leaving     c-009 (untolerated taint {drill:NoExecute}, since 2026-01-01 11:59:00 UTC)\n",
		"\n  returns     to c-009 at 12:00:20 UTC, when that has been well for 30s\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// TestUntilWhenACopyIsKept: where it serves nobody and its task says for how long, that is told.
func TestUntilWhenACopyIsKept(t *testing.T) {
	for health, want := range map[workv1alpha2.ResourceHealth]string{
		workv1alpha2.ResourceHealthy:   "kept until c-001 is healthy",
		workv1alpha2.ResourceUnhealthy: "kept until c-001 is healthy, or until 12:09:00 UTC",
	} {
		in := overQuota(t)
		in.Works = nil
		b := in.Binding.(*workv1alpha2.ResourceBinding)
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
			FromCluster: "c-009", Producer: "somebody", Reason: "Maintenance", CreationTimestamp: ptr.To(metav1.NewTime(noon.Add(-time.Minute))), GracePeriodSeconds: ptr.To[int32](600),
		}}
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "c-009", Applied: true, Health: health}}
		var got string
		for _, c := range explain.Explain(in).Delivery.Clusters {
			if c.Cluster == "c-009" {
				got = c.Kept
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", health, got, want)
		}
	}
}
