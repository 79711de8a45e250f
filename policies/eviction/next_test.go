package eviction_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
)

// TestTheNextRun checks that, of several tasks, the first one whose grace period
// is over decides when to look again, and that only that task ends then.
func TestTheNextRun(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	task := func(cluster string, grace int32) workv1alpha2.GracefulEvictionTask {
		return workv1alpha2.GracefulEvictionTask{
			FromCluster: cluster, Reason: "ApplicationFailure", Producer: "resource-binding-application-failover-controller", PurgeMode: policyv1alpha1.PurgeModeGracefully,
			GracePeriodSeconds: &grace, CreationTimestamp: ptr.To(metav1.NewTime(noon)),
		}
	}
	spec := &workv1alpha2.ResourceBindingSpec{Clusters: targets("d"), GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{task("a", 90), task("b", 30), task("c", 60)}}
	yes, no := func(string) bool { return true }, func(string) bool { return false }
	none := func(string, bool) bool { return false }
	var got []string
	for now := noon; ; {
		tasks, ended, next := eviction.Ending{HasWork: yes, Ready: no, Serves: none, Gone: no, Scheduled: true, Now: now}.Of(spec)
		spec.GracefulEvictionTasks = tasks
		for _, cluster := range ended {
			got = append(got, cluster+" after "+now.Sub(noon).String())
		}
		if next.IsZero() {
			break
		}
		now = next
	}
	if diff := cmp.Diff([]string{"b after 30s", "c after 1m0s", "a after 1m30s"}, got); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
}
