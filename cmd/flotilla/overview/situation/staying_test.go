package situation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/unplaced"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestWhatCannotBeMovedIsReported: whatever asks for it to move, a drain, a taint or the loss of its cluster, it is not as it should be.
func TestWhatCannotBeMovedIsReported(t *testing.T) {
	s := situation.NewSurvey(now, "")
	s.Cluster(member("east"), time.Time{})
	for name, why := range map[string]string{"a": "It stays in east (a taint): no other place: none.", "web": "It stays in east (a taint): no other place: none.", "api": "It stays in east (a taint): no other place: none.", "db": "It stays in east (a taint): no other place: no room.", "job": ""} {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-deployment"}}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceHealthy}}
		if why != "" {
			b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Evictable, Status: metav1.ConditionFalse, Reason: workv1alpha2.NoReplacementReason, Message: why}}
		}
		if name == "a" {
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name}
		}
		propagation.ClaimOf(carrying(name, 1)).Set(b)
		s.Binding(b, nil)
	}
	_, got, _ := strings.Cut(string(text(t, s.Fleet(), false)), "NOT READY\n")
	const want = `   1  Deployment shop/api: it must be moved, and cannot be; the same of 2 more: Deployment shop/web, ConfigMap shop/a. It stays in east (a taint): no other place: none
      next: flotilla explain deployment/api -n shop
   2  Deployment shop/db: it must be moved, and cannot be. It stays in east (a taint): no other place: no room
      next: flotilla explain deployment/db -n shop
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWhatSomebodysTaskCannotMoveIsToldOnce: a task that others wrote names a cluster of the placement, and there is no other one.
func TestWhatSomebodysTaskCannotMoveIsToldOnce(t *testing.T) {
	s := situation.NewSurvey(now, "")
	s.Cluster(member("east"), time.Time{})
	b := bindingOf("web")
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
	b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "east", Producer: "ops", Reason: "Maintenance", Message: "its disks are changed"}}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceHealthy}}
	const why = "It stays in east (its disks are changed): no other place: 0/1 clusters are available"
	b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Evictable, Status: metav1.ConditionFalse, Reason: workv1alpha2.NoReplacementReason, Message: why + "."}}
	b.Annotations = placement.Decision{Record: placement.Record{
		Reason: workv1alpha2.BindingReasonSuccess, Stays: &unplaced.Stays{Clusters: []string{"east"}, Message: why + "."},
	}}.Annotations()
	propagation.ClaimOf(carrying("web", 1)).Set(b)
	s.Binding(b, nil)
	var got []string
	for _, p := range s.Fleet().Problems {
		got = append(got, p.Message)
	}
	if diff := cmp.Diff([]string{"it must be moved, and cannot be. " + why}, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestADrainThatCannotEnd: what a drain cannot move is no more ready than the drain is: it is told with how to end that.
func TestADrainThatCannotEnd(t *testing.T) {
	s := situation.NewSurvey(now, "")
	east := member("east")
	east.Spec.Taints = drain.Taints()
	s.Cluster(east, time.Time{})
	for _, name := range []string{"api", "web"} {
		b := bindingOf(name)
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceHealthy}}
		b.Status.Conditions = []metav1.Condition{{
			Type: workv1alpha2.Evictable, Status: metav1.ConditionFalse, Reason: workv1alpha2.NoReplacementReason,
			Message: "It stays in east (untolerated taint {cluster.flotilla.io/drain:NoExecute}): no other place: 0/1 clusters are available.",
		}}
		propagation.ClaimOf(carrying(name, 1)).Set(b)
		s.Binding(b, nil)
	}
	got := s.Fleet()
	want := []situation.Problem{{
		State: situation.Failed, Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "api", Clusters: []string{"east"},
		Message: "a drain waits for it, and it cannot be moved; the same of 1 more: Deployment shop/web. It stays in east (untolerated taint {cluster.flotilla.io/drain:NoExecute}): no other place: 0/1 clusters are available",
		Next:    "let its policy mean another cluster with room, or end the drain: flotilla uncordon east; flotilla explain deployment/api -n shop",
	}}
	if diff := cmp.Diff(want, got.Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if len(got.Notes) > 0 {
		t.Errorf("it is told twice: %v", got.Notes)
	}
}

// TestWhatHasFinishedHoldsNoDrain: a cluster in which only Jobs are left that have ended is drained, and counts them.
func TestWhatHasFinishedHoldsNoDrain(t *testing.T) {
	for name, tc := range map[string]struct {
		condition, word, count string
	}{
		"it runs":      {"Suspended", "True,draining", "0/1"},
		"it has ended": {"Complete", "True,drained", "1/1 (1 finished)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			east := member("east")
			east.Spec.Taints = drain.Taints()
			s.Cluster(east, time.Time{})
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "import-job"}}
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "import"}
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
			b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{
				ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceHealthy,
				Status: &runtime.RawExtension{Raw: []byte(`{"conditions":[{"type":"` + tc.condition + `","status":"True"}]}`)},
			}}
			propagation.ClaimOf(carrying("import", 1)).Set(b)
			s.Binding(b, nil)
			got := string(text(t, s.Fleet(), false))
			if !strings.Contains(got, tc.word) || !strings.Contains(got, tc.count+"  ") {
				t.Errorf("it lacks %s or %s:\n%s", tc.word, tc.count, got)
			}
		})
	}
}

// TestAMoveSaysWhy: the report says where the template runs until its new place is healthy, and why it has to leave.
func TestAMoveSaysWhy(t *testing.T) {
	s := situation.NewSurvey(now, "")
	s.Cluster(member("east"), time.Time{})
	s.Cluster(member("west"), time.Time{})
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "west"}}
	b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
		FromCluster: "east", Producer: workv1alpha2.EvictionProducerTaintManager, Reason: workv1alpha2.EvictionReasonTaintUntolerated, Message: "untolerated taint {a:NoExecute}",
		CreationTimestamp: ptr.To(metav1.NewTime(now)),
	}}
	propagation.ClaimOf(carrying("web", 1)).Set(b)
	s.Binding(b, nil)
	got := string(text(t, s.Fleet(), false))
	if want := "Deployment shop/web: moved off east (untolerated taint {a:NoExecute}), and kept there until west is healthy\n"; !strings.Contains(got, want) {
		t.Errorf("%s\nis not in\n%s", want, got)
	}
}

// TestWhatWasMovedOffALostClusterIsReady: the template runs where it is placed, and its old copy is removed once the cluster is ready again.
func TestWhatWasMovedOffALostClusterIsReady(t *testing.T) {
	for name, tc := range map[string]struct {
		health workv1alpha2.ResourceHealth
		want   []string
	}{
		"it is well elsewhere": {workv1alpha2.ResourceHealthy, []string{
			"templates 2/2.",
			"Deployment shop/api: it was moved off east; the same of 1 more: Deployment shop/web. Its old copy goes once east is back, if it is healthy elsewhere by then\n",
		}},
		"not yet": {workv1alpha2.ResourceUnhealthy, []string{
			"templates 0/2.",
			"Deployment shop/web: moved off east (untolerated taint {a:NoExecute}), and kept there until east is back and west is healthy\n",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			east := member("east")
			east.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterNotReachableReason, LastTransitionTime: metav1.NewTime(now)}}
			s.Cluster(east, time.Time{})
			s.Cluster(member("west"), time.Time{})
			for _, name := range []string{"api", "web"} {
				b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-deployment"}}
				b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
				b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "west"}}
				b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
					FromCluster: "east", Producer: workv1alpha2.EvictionProducerTaintManager, Reason: workv1alpha2.EvictionReasonTaintUntolerated, Message: "untolerated taint {a:NoExecute}",
				}}
				b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "west", Applied: true, Health: tc.health}}
				propagation.ClaimOf(carrying(name, 1)).Set(b)
				s.Binding(b, nil)
			}
			got := string(text(t, s.Fleet(), false))
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s\nis not in\n%s", want, got)
				}
			}
		})
	}
}

// TestADrainedClusterIsCalledSo: a cluster is called drained once nothing is placed there, no old copy is left and none is still being removed, and its
// drain taint is not listed. Old copies are also counted in a cluster that was uncordoned.
func TestADrainedClusterIsCalledSo(t *testing.T) {
	s := situation.NewSurvey(now, "")
	for _, name := range []string{"east", "held", "north", "northwest", "south", "west"} {
		c := member(name)
		if name != "south" {
			c.Spec.Taints = drain.Taints()
		}
		s.Cluster(c, time.Time{})
	}
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "west"}}
	b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "north"}, {FromCluster: "south"}}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "north", Applied: true, Health: workv1alpha2.ResourceHealthy},
		{ClusterName: "northwest", Applied: true, Health: workv1alpha2.ResourceHealthy}, // its task is over, and its copy still goes
		{ClusterName: "west", Applied: true, Health: workv1alpha2.ResourceHealthy},
	}
	propagation.ClaimOf(carrying("web", 1)).Set(b)
	s.Binding(b, nil)
	s.Work(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace("held"), Name: "web", DeletionTimestamp: &metav1.Time{Time: now}}})
	var got []string
	for _, line := range strings.Split(string(text(t, s.Fleet(), false)), "\n") {
		for _, name := range []string{"east", "held", "north", "northwest", "south", "west"} {
			if strings.HasPrefix(line, "  "+name+" ") {
				got = append(got, strings.Join(strings.Fields(line), " "))
			}
		}
	}
	want := []string{
		"east True,drained - Push - 0/0 -", "held True,draining - Push - 0/0 -", "north True,draining - Push - 0/0 (1 leaving) -", "northwest True,draining - Push - 0/0 (1 leaving) -",
		"south True - Push - 0/0 (1 leaving) -", "west True,draining - Push - 1/1 -",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
