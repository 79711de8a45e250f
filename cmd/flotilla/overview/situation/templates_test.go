package situation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestNamesakes: two kinds with the same name are distinguished, also in commands.
func TestNamesakes(t *testing.T) {
	for apiVersion, want := range map[string][2]string{
		"batch/v1":                  {"Job shop/load", "flotilla events --for Job/load -n shop -C east"},
		"batch.volcano.sh/v1alpha1": {"Job.batch.volcano.sh shop/load", "flotilla events --for Job.batch.volcano.sh/load -n shop -C east"},
	} {
		s := situation.NewSurvey(now, "")
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "load-job"}}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: "Job", Namespace: "shop", Name: "load"}
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceUnhealthy}}
		propagation.ClaimOf(carrying("web", 1)).Set(b)
		s.Binding(b, nil)
		p := s.Fleet().Problems[0]
		if diff := cmp.Diff(want, [2]string{p.Object(), p.Next}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", apiVersion, diff)
		}
	}
}

// TestWhenItWasFound: the counts of a decision are from the time when it was made.
func TestWhenItWasFound(t *testing.T) {
	const message = "0/2 clusters are available: 2 cluster(s) did not match"
	s := situation.NewSurvey(now, "")
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", Annotations: map[string]string{
		workv1alpha2.SchedulingDecisionAnnotation: fmt.Sprintf(`{"reason":"NoClusterFit","message":%q,"at":"2026-03-05T09:20:00Z"}`, message),
	}}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	propagation.ClaimOf(carrying("web", 1)).Set(b)
	s.Binding(b, nil)
	if got, want := s.Fleet().Problems[0].Message, message+" (found 10m ago)"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

// TestWhatARefusedEditLeavesRunning: clusters of the previous placement are counted, but not as
// ready; their problems, and that some do not answer, are reported
// nevertheless.
func TestWhatARefusedEditLeavesRunning(t *testing.T) {
	s := situation.NewSurvey(now, "")
	s.Cluster(member("east"), time.Time{})
	s.Cluster(member("north"), time.Time{})
	gone := member("west")
	gone.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterNotReachableReason}}
	s.Cluster(gone, time.Time{})
	b := bindingOf("web")
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "north"}, {Name: "west"}}
	b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: "QuotaExceeded", Message: "FederatedResourceQuota shop/q is exceeded"}}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceHealthy},
		{ClusterName: "north", Applied: true, Health: workv1alpha2.ResourceUnhealthy},
		{ClusterName: "west", Applied: true, Health: workv1alpha2.ResourceHealthy},
	}
	propagation.ClaimOf(carrying("web", 1)).Set(b)
	s.Binding(b, nil)
	fleet := s.Fleet()
	for i, want := range []situation.Count{{Total: 1}, {Total: 1}, {Total: 1, Unknown: 1}} {
		if diff := cmp.Diff(want, fleet.Clusters[i].Templates); diff != "" {
			t.Errorf("templates of %s (-want +got):\n%s", fleet.Clusters[i].Name, diff)
		}
	}
	var messages []string
	for _, p := range fleet.Problems {
		if p.Kind == "Deployment" {
			messages = append(messages, strings.Join(p.Clusters, ",")+": "+p.Message)
		}
	}
	if diff := cmp.Diff([]string{": FederatedResourceQuota shop/q is exceeded", "north: not ready"}, messages); diff != "" {
		t.Errorf("problems of the template (-want +got):\n%s", diff)
	}
}

// TestAnEditThatNoPolicyCarries: clusters run an earlier version than the template, and without a policy
// that does not change: the template is not ready.
func TestAnEditThatNoPolicyCarries(t *testing.T) {
	edited := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web"}}}
	b := bindingOf("web")
	b.Annotations = map[string]string{propagation.DigestAnnotation: "before"}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceHealthy}}
	for name, tc := range map[string]struct {
		template *unstructured.Unstructured
		ready    int
		problems []string
		notes    []string
	}{
		"it was edited": {edited, 0, []string{"no policy carries it any more: its latest version stays on the control plane"}, nil},
		"nobody knows":  {nil, 1, nil, []string{"no policy carries it: what runs in clusters runs on, and its edits stay on the control plane"}},
	} {
		s := situation.NewSurvey(now, "")
		s.Cluster(member("east"), time.Time{})
		s.Binding(b, tc.template)
		fleet := s.Fleet()
		var problems, notes []string
		for _, p := range fleet.Problems {
			problems = append(problems, p.Message)
		}
		for _, n := range fleet.Notes {
			notes = append(notes, n.Message)
		}
		if diff := cmp.Diff(tc.problems, problems); diff != "" {
			t.Errorf("%s: problems (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.notes, notes); diff != "" {
			t.Errorf("%s: notes (-want +got):\n%s", name, diff)
		}
		if got := fleet.Clusters[0].Templates; got != (situation.Count{Total: 1, Ready: tc.ready}) {
			t.Errorf("%s: templates of the cluster: %+v", name, got)
		}
	}
}

// TestAKustomizationThatWaitsInVain: a Kustomization that waits for the health of templates which no policy
// selects any more is reported with these, because its commit cannot become ready.
func TestAKustomizationThatWaitsInVain(t *testing.T) {
	s := situation.NewSurvey(now, "")
	s.Cluster(member("east"), time.Time{})
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	ks.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionUnknown, Reason: "Progressing", Message: "Running health checks"}}
	ks.Status.Inventory = &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{{ID: "shop_web_apps_Deployment", Version: "v1"}}}
	s.Kustomization(ks)
	b := bindingOf("web")
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceHealthy}}
	s.Binding(b, nil)
	want := []situation.Problem{{State: situation.Progressing, Kind: "Kustomization", Namespace: "default", Name: "web",
		Message: "Running health checks; no policy carries Deployment shop/web any more", Next: "flotilla explain deployment/web -n shop"}}
	if diff := cmp.Diff(want, s.Fleet().Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestWhatIsNotUnderstood: a failing webhook or rule is reported once, instead of unknown health in
// each cluster.
func TestWhatIsNotUnderstood(t *testing.T) {
	s := situation.NewSurvey(now, "")
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "west"}}
	b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Interpreted, Status: metav1.ConditionFalse, Message: "east: webhook w: no answer"}}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceUnknown}, {ClusterName: "west", Applied: true, Health: workv1alpha2.ResourceHealthy},
	}
	propagation.ClaimOf(carrying("web", 1)).Set(b)
	s.Binding(b, nil)
	want := []situation.Problem{{State: situation.Progressing, Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web",
		Message: "east: webhook w: no answer", Next: "flotilla explain deployment/web -n shop"}}
	fleet := s.Fleet()
	if diff := cmp.Diff(want, fleet.Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(situation.Count{Total: 1}, fleet.Templates); diff != "" {
		t.Errorf("templates (-want +got):\n%s", diff)
	}
}

// TestWhatWasRemovedAndIsLeftSo: an object that was removed and is not restored is reported with the next step, instead of unknown health.
func TestWhatWasRemovedAndIsLeftSo(t *testing.T) {
	s := situation.NewSurvey(now, "")
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceUnknown, Drift: "Deployment shop/web was removed"}}
	propagation.ClaimOf(carrying("web", 1)).Set(b)
	s.Binding(b, nil)
	want := []situation.Problem{{State: situation.Progressing, Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Clusters: []string{"east"},
		Message: "differs from what was applied, and is left so: Deployment shop/web was removed",
		Next:    "put it right there, or have it put back: spec.drift Revert of its policy; flotilla explain deployment/web -n shop --cluster east"}}
	if diff := cmp.Diff(want, s.Fleet().Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
