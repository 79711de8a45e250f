package explain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/explain"
)

// TestWhatIsMovedIsReported checks that users see why and since when a cluster is
// being left, and when and where to the template will return.
func TestWhatIsMovedIsReported(t *testing.T) {
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

// TestWhatCannotBeMovedIsReported checks that the next step fits the taint for which a template must leave a
// cluster, and that an old copy waits for a cluster that is lost.
func TestWhatCannotBeMovedIsReported(t *testing.T) {
	for name, tc := range map[string]struct{ taint, want string }{
		"a drain":            {clusterv1alpha1.TaintClusterDrain, "end the drain: flotilla uncordon c-009, or let the policy mean another cluster with room"},
		"a lost cluster":     {clusterv1alpha1.TaintClusterUnreachable, "bring the cluster back: flotilla describe cluster c-009, or let the policy mean another cluster with room"},
		"an unready cluster": {clusterv1alpha1.TaintClusterNotReady, "bring the cluster back: flotilla describe cluster c-009, or let the policy mean another cluster with room"},
		"a taint of admins":  {"drill", "take the taint away, have its policy tolerate it, or let the policy mean another cluster with room"},
	} {
		t.Run(name, func(t *testing.T) {
			in := overQuota(t)
			in.Clusters = nil
			in.Unread = append(in.Unread, explain.Unread{What: explain.UnreadClusters})
			in.Binding.(*workv1alpha2.ResourceBinding).Annotations[workv1alpha2.SchedulingDecisionAnnotation] =
				`{"reason":"Success","stays":{"clusters":["c-009"],"message":"cluster(s) had untolerated taint {` + tc.taint + `:NoExecute}. It stays in c-009: no other place"}}`
			var got []string
			for _, p := range explain.Explain(in).Problems {
				if p.Reason == explain.ReasonNoReplacement {
					got = append(got, p.Next)
				}
			}
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("next step (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnOldCopyInALostCluster checks that users see what the copy waits for that failover has replaced.
func TestAnOldCopyInALostCluster(t *testing.T) {
	in := overQuota(t)
	lost := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c-009"}}
	lost.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterNotReachableReason}}
	in.Clusters = []*clusterv1alpha1.Cluster{lost}
	b := in.Binding.(*workv1alpha2.ResourceBinding)
	b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "c-009", Producer: "TaintManager", Reason: "TaintUntolerated", Message: "untolerated taint {drill:NoExecute}"}}
	var got []string
	for _, l := range explain.Explain(in).Placement.Stands.Leaving {
		got = append(got, l.Message)
	}
	if diff := cmp.Diff([]string{"untolerated taint {drill:NoExecute}; the copy there goes once c-009 is back, if it is healthy elsewhere by then"}, got); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

// TestWhatStaysWhenTheTemplateGoes checks that what stays when the template is
// deleted is shown, also where nothing is placed.
func TestWhatStaysWhenTheTemplateGoes(t *testing.T) {
	in := input(t)
	in.Policies[0].PropagationSpec().PreserveResourcesOnDeletion = ptr.To(true)
	in.Clusters = nil
	got := explain.Explain(in).Delivery
	if got == nil || !got.Preserved {
		t.Errorf("delivery %+v, want that it is kept", got)
	}
}

// TestAnOldCopyThatIsThereStill checks that an old copy is shown until its
// cluster has reported that it is gone, whatever was decided.
func TestAnOldCopyThatIsThereStill(t *testing.T) {
	in := input(t)
	bind(t, &in)
	b := in.Binding.(*workv1alpha2.ResourceBinding)
	b.Spec.GracefulEvictionTasks = nil
	b.Annotations[workv1alpha2.SchedulingDecisionAnnotation] = `{"reason":"Success","at":"2026-01-01T11:00:00Z","lastMove":{"from":["c-009"],"to":["c-001"],"why":"it is unreachable","at":"2026-01-01T11:58:00Z","ended":"2026-01-01T11:59:00Z"}}`
	moved := func() string { return explain.Explain(in).Placement.Stands.Moved }
	const came = "from c-009 to c-001 at 2026-01-01 11:58:00 UTC, 2m ago: it is unreachable"
	got := []string{moved()}
	in.Works = []*workv1alpha1.Work{parse(t, "metadata: {namespace: karmada-es-c-009, name: web}", &workv1alpha1.Work{})}
	got = append(got, moved())
	if diff := cmp.Diff([]string{came + "; the old copy went at 11:59:00 UTC", came + "; the old copy in c-009 is to go"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUntilWhenACopyIsKept checks that the time until which a copy is kept is
// shown where it serves nobody and its task has a time.
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

// TestWhenAClusterIsLeftIsReported checks that users see when a cluster will be left
// as soon as it is lost, by the failover rules in the decision's record.
func TestWhenAClusterIsLeftIsReported(t *testing.T) {
	const rules = `,"failover":{"tolerance":60,"skew":20}`
	for name, tc := range map[string]struct {
		noted     string
		alone     bool // there is no other cluster
		suspected bool
		want      string // what is shown about leaving it; empty for nothing
	}{
		"it leaves in a while":       {noted: rules, want: "  leaves      c-001 at 12:00:30 UTC (in 30s) unless it is back: untolerated taint\n              {cluster.karmada.io/unreachable:NoExecute}\n"},
		"there is no other place":    {noted: rules, alone: true, want: "  stays in    c-001, which it should leave (untolerated taint\n              {cluster.karmada.io/unreachable:NoExecute}) at 12:00:30 UTC: it cannot be moved: no\n              other place: 0/1 clusters are available"},
		"many were lost at once":     {noted: rules, suspected: true, want: "  stays in    c-001, which it should leave (untolerated taint\n              {cluster.karmada.io/unreachable:NoExecute}): MassFailureSuspected stands on it:\n              flotilla describe cluster c-001\n"},
		"nobody knows by what rules": {},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			bind(t, &in)
			b := bound(t)
			b.Spec.Clusters, b.Spec.GracefulEvictionTasks, b.Spec.RequiredBy = b.Spec.Clusters[:1], nil, nil
			b.Annotations[workv1alpha2.SchedulingDecisionAnnotation] = `{"reason":"Success","affinityName":"backup","at":"2026-01-01T11:00:00Z"` + tc.noted + `}`
			in.Binding = b
			in.Clusters = slices.Clone(in.Clusters)
			i := slices.IndexFunc(in.Clusters, func(c *clusterv1alpha1.Cluster) bool { return c.Name == "c-001" })
			lost := in.Clusters[i].DeepCopy()
			since := metav1.NewTime(noon.Add(-30 * time.Second))
			meta.SetStatusCondition(&lost.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterNotReachableReason, LastTransitionTime: since})
			if tc.suspected {
				meta.SetStatusCondition(&lost.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionMassFailureSuspected, Status: metav1.ConditionTrue, Reason: clusterv1alpha1.MassFailureReason})
			}
			lost.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &since}}
			in.Clusters[i] = lost
			if tc.alone {
				in.Clusters = []*clusterv1alpha1.Cluster{lost}
			}
			text := explain.Explain(in).Text(explain.TextOptions{})
			if reported := strings.Contains(text, "\n  leaves ") || strings.Contains(text, "\n  stays in "); reported != (tc.want != "") || !strings.Contains(text, tc.want) {
				t.Errorf("%q is not in\n%s", tc.want, text)
			}
		})
	}
}
