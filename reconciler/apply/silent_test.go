package apply_test

import (
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
)

// TestALostClusterIsReportedAtOnce: a Kustomization that is ready and checks the health of something in a cluster looks again
// when that falls silent, and when it is heard of again, and so does the one that holds it; others do not. Nothing is
// built or applied for that.
func TestALostClusterIsReportedAtOnce(t *testing.T) {
	c := newCarried(newQuietWorld(t))
	west := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: c.west}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}
	c.create(west)
	revision := c.commit(map[string]string{
		"root/web.yaml": strings.Replace(child("web", "app"), "prune: true", "prune: true, wait: true", 1),
		"app/x.yaml":    named("old"), "other/y.yaml": named("other"),
	})
	at := func(path string, change func(*kustomizev1.KustomizationSpec)) func(*kustomizev1.KustomizationSpec) {
		return func(spec *kustomizev1.KustomizationSpec) { spec.Path = path; change(spec) }
	}
	c.kustomization("root", at("./root", waiting))
	c.t.Cleanup(func() { c.remove("web") })
	c.kustomization("other", at("./other", waiting))
	c.bind("old")
	c.apply(c.east, "old", workv1alpha1.ResourceHealthy)
	c.apply(c.west, "old", workv1alpha1.ResourceHealthy)
	for _, name := range []string{"web", "root", "other"} {
		c.ready(name, revision)
	}
	builds, events := c.builds.runs(), len(c.events.about("web"))

	since := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	for _, step := range []struct {
		ready          metav1.ConditionStatus
		clusterReason  string
		reason         string
		messageOf, has string
	}{
		{metav1.ConditionFalse, clusterv1alpha1.ClusterNotReachableReason, health.ReasonClusterSilent, "web", c.west + ": unreachable since 2026-01-02 03:04 UTC; last heard: healthy"},
		{metav1.ConditionTrue, clusterv1alpha1.ClusterReadyReason, meta.ReconciliationSucceededReason, "root", "Applied revision: " + revision},
	} {
		c.Emptied(t)
		before := c.QuietRevision(t)
		west.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: step.ready, Reason: step.clusterReason, LastTransitionTime: metav1.NewTime(since)}}
		if err := c.Hub.Status().Update(t.Context(), west); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"web", "root"} {
			c.awaitReason(name, revision, step.reason)
		}
		if message := c.awaitReason(step.messageOf, revision, step.reason); !strings.Contains(message, step.has) {
			t.Errorf("message = %q, want it to say %q", message, step.has)
		}
		if writes := c.QuietRevision(t) - before; writes != 3 {
			t.Errorf("Ready is %s: %d writes, want the test's and one of each of the two", step.ready, writes)
		}
		c.ready("other", revision)
	}
	if got := c.builds.runs() - builds; got != 0 {
		t.Errorf("%d builds", got)
	}
	if got := c.events.about("web")[events:]; len(got) != 2 || !strings.Contains(got[0], health.ReasonClusterSilent) || !strings.Contains(got[1], "its health is known again") {
		t.Errorf("events: %v", got)
	}
}
