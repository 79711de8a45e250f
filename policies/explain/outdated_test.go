package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// overQuota returns a template whose last edit a quota refuses, with the Work of
// the version before.
func overQuota(t *testing.T) explain.Input {
	in := input(t)
	bind(t, &in)
	in.Template.SetCreationTimestamp(metav1.NewTime(noon))
	b := bound(t)
	b.Spec.Clusters, b.Spec.GracefulEvictionTasks, b.Spec.RequiredBy = b.Spec.Clusters[:1], nil, nil
	b.Status = workv1alpha2.ResourceBindingStatus{}
	b.Annotations[propagation.DigestAnnotation] = "before"
	b.Annotations[workv1alpha2.SchedulingDecisionAnnotation] = `{"reason":"QuotaExceeded","message":"the latest version of its template is held back: quota q is exceeded","affinityName":"backup","at":"2026-01-01T11:00:00Z"}`
	in.Binding = b
	in.Works = []*workv1alpha1.Work{parse(t, `
metadata: {namespace: karmada-es-c-001, name: web, generation: 1, annotations: {propagation.flotilla.io/digest: before}}
status:
  conditions: [{type: Applied, status: "True", reason: AppliedSuccessful, observedGeneration: 1}]
  manifestStatuses: [{health: Healthy}]
`, &workv1alpha1.Work{})}
	in.Works[0].Annotations = map[string]string{propagation.DigestAnnotation: "before"}
	return in
}

// TestWhatAQuotaRefuses checks that one cause is one problem, that nothing is
// decided, and that clusters are not shown as having applied what they do not
// have.
func TestWhatAQuotaRefuses(t *testing.T) {
	golden(t, "quota.txt", explain.Explain(overQuota(t)).Text(explain.TextOptions{}))
	first := overQuota(t)
	first.Binding.BindingSpec().Clusters, first.Works = nil, []*workv1alpha1.Work{}
	if d := explain.Explain(first).Delivery; len(d.Clusters) > 0 {
		t.Errorf("what was never placed is to be delivered to %+v", d.Clusters)
	}
}

// TestTheVersionBefore checks that a cluster that has yet to apply an edit is not
// shown as having applied it.
func TestTheVersionBefore(t *testing.T) {
	in := overQuota(t)
	digest, err := propagation.Digest(in.Template)
	if err != nil {
		t.Fatal(err)
	}
	a := bound(t).Annotations
	a[propagation.DigestAnnotation] = digest
	in.Binding.SetAnnotations(a)
	in.Works[0].Annotations[propagation.DigestAnnotation] = digest
	in.Works[0].Generation = 2
	want := []explain.Delivered{{Cluster: "c-001", Outdated: true, Health: "Healthy", Message: "latest version not applied yet"}}
	e := explain.Explain(in).Only([]string{"c-001"})
	if diff := cmp.Diff(want, e.Delivery.Clusters); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestARecalledRemoval: what a silent cluster was to remove, and is to keep after all, is not told as never heard of.
func TestARecalledRemoval(t *testing.T) {
	in := overQuota(t)
	delete(in.Binding.GetAnnotations(), workv1alpha2.SchedulingDecisionAnnotation)
	digest, err := propagation.Digest(in.Template)
	if err != nil {
		t.Fatal(err)
	}
	in.Binding.GetAnnotations()[propagation.DigestAnnotation] = digest
	in.Works[0].DeletionTimestamp = &metav1.Time{Time: noon}
	in.Works[0].Annotations = map[string]string{propagation.DigestAnnotation: digest, workv1alpha2.WantedAgainAnnotation: workv1alpha2.WantedAgain}
	row := func() string {
		for line := range strings.Lines(explain.Explain(in).Text(explain.TextOptions{})) {
			if strings.Contains(line, "c-001") && strings.Contains(line, "Unknown") {
				return strings.Join(strings.Fields(line), " ")
			}
		}
		return ""
	}
	if got, want := row(), "c-001 not yet Unknown it was there, and stays: its removal was recalled"; got != want {
		t.Errorf("of a cluster that answers %q, want %q", got, want)
	}
	for _, c := range in.Clusters {
		if c.Name == "c-001" {
			c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterNotReachableReason, LastTransitionTime: metav1.NewTime(noon)}}
		}
	}
	in.Now = noon.Add(2 * time.Minute)
	if got, want := row(), "c-001 unknown Unknown unreachable for 2m; it was there, and stays: its removal was recalled"; got != want {
		t.Errorf("of a silent cluster %q, want %q", got, want)
	}
}

// TestWhatToDoAboutANameThatIsNoCluster checks that the advice is to correct the
// name, not to label clusters, where the policy names a cluster that does not
// exist.
func TestWhatToDoAboutANameThatIsNoCluster(t *testing.T) {
	in := input(t)
	in.Policies[0].PropagationSpec().Placement = policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"c-oo1"}}}
	type problem struct{ Reason, Next string }
	var got []problem
	for _, p := range explain.Explain(in).Problems {
		got = append(got, problem{p.Reason, p.Next})
	}
	const correct = "correct the name, or join the cluster: flotilla get clusters"
	if diff := cmp.Diff([]problem{{explain.ReasonNotPlaced, correct}, {explain.ReasonUnknownCluster, correct}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestACordonedCluster checks that a cordoned cluster is shown as such where it
// keeps what it has, and that the advice is to uncordon it where it gets nothing
// for that reason.
func TestACordonedCluster(t *testing.T) {
	in := input(t)
	in.Policies[0].PropagationSpec().Placement = policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"c-001"}}}
	for _, c := range in.Clusters {
		if c.Name == "c-001" {
			c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: clusterv1alpha1.TaintClusterUnscheduler, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	var next []string
	for _, p := range explain.Explain(in).Problems {
		next = append(next, p.Next)
	}
	if diff := cmp.Diff([]string{"flotilla uncordon c-001 takes it off; or tolerate it in spec.placement.clusterTolerations of the policy"}, next); diff != "" {
		t.Errorf("what to do (-want +got):\n%s", diff)
	}
	in.Policies[0].PropagationSpec().Placement.ClusterTolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	text := explain.Explain(in).Text(explain.TextOptions{})
	if !strings.Contains(text, "cordoned\n") {
		t.Errorf("nobody is told that the cluster is cordoned:\n%s", text)
	}
	for _, c := range in.Clusters {
		if c.Name == "c-001" {
			c.Spec.Taints = append(c.Spec.Taints, failover.DrainTaint())
		}
	}
	text = explain.Explain(in).Text(explain.TextOptions{})
	if !strings.Contains(text, "drained\n") || strings.Contains(text, "cordoned") {
		t.Errorf("nobody is told that the cluster is drained, and not only cordoned:\n%s", text)
	}
}
