package join_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/join"
)

// leaves is a cluster that leaves, and is observed by a clock of its own.
type leaves struct {
	*testing.T
	hub      client.Client
	clock    *testingclock.FakeClock
	cluster  *clusterv1alpha1.Cluster
	d        *join.Departure
	reported []string
	away     error // the error of requests to the member
}

func newLeaves(t *testing.T, mode clusterv1alpha1.ClusterSyncMode) *leaves {
	t.Helper()
	l := &leaves{T: t, clock: testingclock.NewFakeClock(time.Unix(1000, 0))}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "one", Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer}}}
	work.Spec.Workload.Manifests = make([]workv1alpha1.Manifest, 2)
	work.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"web"}}`)
	work.Spec.Workload.Manifests[1].Raw = []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.NamespaceKarmadaCluster, Name: "eu-1"}}
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(40))
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(l.clock.Now()))
	l.hub = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(work, lease).Build()
	l.cluster = &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}
	l.ready(metav1.ConditionTrue)
	l.d = &join.Departure{Name: "eu-1", Hub: l.hub, Clock: l.clock, Report: func(line string) { l.reported = append(l.reported, line) }}
	if mode == clusterv1alpha1.Push {
		l.d.Answers = func(context.Context) error { return l.away }
	}
	return l
}

func (l *leaves) ready(is metav1.ConditionStatus) {
	l.cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: is}}
}

// unready makes the cluster not ready, for a reason.
func (l *leaves) unready(why string) {
	l.ready(metav1.ConditionFalse)
	l.cluster.Status.Conditions[0].Reason = why
}

// after observes the cluster once some time has passed.
func (l *leaves) after(pass time.Duration, cluster *clusterv1alpha1.Cluster) {
	l.Helper()
	l.clock.Step(pass)
	if err := l.d.Observe(l.Context(), cluster); err != nil {
		l.Fatal(err)
	}
}

// beat renews the agent's Lease.
func (l *leaves) beat() {
	l.Helper()
	lease := &coordinationv1.Lease{}
	if err := l.hub.Get(l.Context(), client.ObjectKey{Namespace: workv1alpha2.NamespaceKarmadaCluster, Name: "eu-1"}, lease); err != nil {
		l.Fatal(err)
	}
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(l.clock.Now()))
	if err := l.hub.Update(l.Context(), lease); err != nil {
		l.Fatal(err)
	}
}

// judged sets the status of the Work: which of its manifests were sent, and a
// message of the cluster.
func (l *leaves) judged(note string, sent ...int) {
	l.Helper()
	work := &workv1alpha1.Work{}
	if err := l.hub.Get(l.Context(), client.ObjectKey{Namespace: space, Name: "one"}, work); err != nil {
		l.Fatal(err)
	}
	work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Message: workv1alpha1.WorkAppliedSuccessfulMessage + "; " + note}}
	for _, ordinal := range sent {
		work.Status.Applied = append(work.Status.Applied, workv1alpha1.AppliedHash{Ordinal: ordinal, Desired: "d", Observed: "o"})
	}
	if err := l.hub.Update(l.Context(), work); err != nil {
		l.Fatal(err)
	}
}

// letGo removes the Work.
func (l *leaves) letGo() {
	l.Helper()
	if err := l.hub.DeleteAllOf(l.Context(), &workv1alpha1.Work{}, client.InNamespace(space)); err != nil {
		l.Fatal(err)
	}
	work := &workv1alpha1.Work{}
	if err := l.hub.Get(l.Context(), client.ObjectKey{Namespace: space, Name: "one"}, work); err != nil {
		l.Fatal(err)
	}
	work.Finalizers = nil
	if err := l.hub.Update(l.Context(), work); err != nil {
		l.Fatal(err)
	}
}

// TestADepartureKnowsWhatNobodyRemoved checks that objects that nobody removed
// are recorded, also where the last Works and the Cluster go between two
// observations.
func TestADepartureKnowsWhatNobodyRemoved(t *testing.T) {
	both := []string{"Namespace shop", "Service shop/web"}
	for name, tc := range map[string]struct {
		mode clusterv1alpha1.ClusterSyncMode
		flow func(*leaves)
		want []string
	}{
		"its agent removes it": {clusterv1alpha1.Pull, func(l *leaves) {
			l.after(time.Second, l.cluster)
			l.letGo()
			l.after(time.Second, nil)
		}, nil},
		"its agent takes long to remove it": {clusterv1alpha1.Pull, func(l *leaves) {
			for range 5 {
				l.beat()
				l.after(10*time.Second, l.cluster)
			}
			l.letGo()
			l.after(time.Second, nil)
		}, nil},
		"its agent was killed before": {clusterv1alpha1.Pull, func(l *leaves) {
			l.after(10*time.Second, l.cluster)
			l.after(29*time.Second, l.cluster)
			l.letGo()
			l.after(time.Second, nil)
		}, both},
		"its agent was killed long before": {clusterv1alpha1.Pull, func(l *leaves) {
			l.after(39*time.Second, l.cluster)
			l.letGo()
			l.after(time.Second, nil)
		}, both},
		"it is seen not to be ready": {clusterv1alpha1.Pull, func(l *leaves) {
			l.after(time.Second, l.cluster)
			l.letGo()
			l.ready(metav1.ConditionUnknown)
			l.after(time.Second, l.cluster)
			l.after(time.Second, nil)
		}, both},
		"an agent with a clock that is behind removes it": {clusterv1alpha1.Pull, func(l *leaves) {
			l.after(30*time.Second, l.cluster)
			l.letGo()
			l.after(time.Second, l.cluster)
			l.after(time.Second, l.cluster)
			l.after(time.Second, nil)
		}, nil},
		"the control plane removes it": {clusterv1alpha1.Push, func(l *leaves) {
			l.after(0, l.cluster)
			l.letGo()
			l.after(time.Second, nil)
		}, nil},
		"the member does not answer": {clusterv1alpha1.Push, func(l *leaves) {
			l.away = errors.New("connection refused")
			l.after(0, l.cluster)
			l.after(10*time.Second, l.cluster)
			l.letGo()
			l.after(time.Second, nil)
		}, both},
		"the member has just stopped to answer": {clusterv1alpha1.Push, func(l *leaves) {
			l.after(0, l.cluster)
			l.away = errors.New("timeout")
			l.after(6*time.Second, l.cluster)
			l.after(3*time.Second, l.cluster)
			l.letGo()
			l.after(time.Second, nil)
		}, both},
		"the member has not answered from the first": {clusterv1alpha1.Push, func(l *leaves) {
			l.away = errors.New("timeout")
			l.after(0, l.cluster)
			l.letGo()
			l.after(time.Second, nil)
		}, both},
		"the member is back before its Works go": {clusterv1alpha1.Push, func(l *leaves) {
			l.away = errors.New("timeout")
			l.after(0, l.cluster)
			l.away = nil
			l.after(6*time.Second, l.cluster)
			l.letGo()
			l.after(time.Second, nil)
		}, nil},
		"the member stops to answer once its Works were removed": {clusterv1alpha1.Push, func(l *leaves) {
			l.after(0, l.cluster)
			l.letGo()
			l.after(time.Second, l.cluster)
			l.away = errors.New("timeout")
			l.after(6*time.Second, l.cluster)
			l.after(time.Second, nil)
		}, nil},
		"the member answers again, and does not count as ready yet": {clusterv1alpha1.Push, func(l *leaves) {
			l.unready(clusterv1alpha1.ClusterAnswersAgainReason)
			l.after(0, l.cluster)
			l.letGo()
			l.after(time.Second, l.cluster)
			l.after(time.Second, nil)
		}, nil},
		"its agent answers again, and it does not count as ready yet": {clusterv1alpha1.Pull, func(l *leaves) {
			l.unready(clusterv1alpha1.ClusterAnswersAgainReason)
			l.after(0, l.cluster)
			l.letGo()
			l.after(time.Second, l.cluster)
			l.after(time.Second, nil)
		}, nil},
		"the member answers again, and is called unreachable until it has done so for longer": {clusterv1alpha1.Push, func(l *leaves) {
			l.unready(clusterv1alpha1.ClusterNotReachableReason)
			l.after(0, l.cluster)
			l.letGo()
			l.after(time.Second, l.cluster)
			l.after(time.Second, nil)
		}, nil},
		"the member is unreachable": {clusterv1alpha1.Push, func(l *leaves) {
			l.unready(clusterv1alpha1.ClusterNotReachableReason)
			l.away = errors.New("timeout")
			l.after(0, l.cluster)
			l.letGo()
			l.after(time.Second, l.cluster)
			l.after(time.Second, nil)
		}, both},
		"the member answers, but not well": {clusterv1alpha1.Push, func(l *leaves) {
			l.unready(clusterv1alpha1.ClusterNotReadyReason)
			l.after(0, l.cluster)
			l.letGo()
			l.after(time.Second, l.cluster)
			l.after(time.Second, nil)
		}, nil},
		"its agent says that it is not well": {clusterv1alpha1.Pull, func(l *leaves) {
			l.unready(clusterv1alpha1.ClusterNotReadyReason)
			l.after(0, l.cluster)
			l.letGo()
			l.after(time.Second, l.cluster)
			l.after(time.Second, nil)
		}, both},
		"it is abandoned": {clusterv1alpha1.Push, func(l *leaves) {
			l.after(0, l.cluster)
			l.d.Abandon()
		}, both},
		"a namespace was there before, and is used as it is": {clusterv1alpha1.Push, func(l *leaves) {
			l.judged("Namespace shop already exists in the cluster and is not managed by Flotilla"+workv1alpha1.WorkAsItIsSuffix, 0)
			l.after(0, l.cluster)
			l.d.Abandon()
		}, both[1:]},
		"a namespace was the fleet's, until somebody took its label away": {clusterv1alpha1.Push, func(l *leaves) {
			l.judged("Namespace shop already exists in the cluster and is not managed by Flotilla"+workv1alpha1.WorkAsItIsSuffix, 0, 1)
			l.after(0, l.cluster)
			l.d.Abandon()
		}, both[1:]},
		"a namespace is the fleet's": {clusterv1alpha1.Push, func(l *leaves) {
			l.judged("", 0, 1)
			l.after(0, l.cluster)
			l.d.Abandon()
		}, both},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeaves(t, tc.mode)
			tc.flow(l)
			if diff := cmp.Diff(tc.want, l.d.Left()); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

// TestADepartureSaysWhatIsWaitedFor checks that it is reported every few seconds
// what is waited for, and for how long nothing has been heard of the cluster.
func TestADepartureSaysWhatIsWaitedFor(t *testing.T) {
	l := newLeaves(t, clusterv1alpha1.Pull)
	for range 7 {
		l.after(3*time.Second, l.cluster)
	}
	want := []string{
		"what 1 Work had it run is still to be removed from cluster eu-1 by its agent",
		"what 1 Work had it run is still to be removed from cluster eu-1 by its agent; nothing has been heard of its agent for 15s: once the control plane is sure of that, it goes on without",
		"what 1 Work had it run is still to be removed from cluster eu-1 by its agent; nothing has been heard of its agent for 21s: once the control plane is sure of that, it goes on without",
	}
	if diff := cmp.Diff(want, l.reported); diff != "" {
		t.Errorf("of an agent (-want +got):\n%s", diff)
	}
	l = newLeaves(t, clusterv1alpha1.Pull)
	l.clock.Step(42 * time.Second)
	l.cluster.Status.Conditions[0].LastTransitionTime = metav1.NewTime(l.clock.Now())
	for range 6 {
		l.after(3*time.Second, l.cluster)
	}
	want = []string{
		"what 1 Work had it run is still to be removed from cluster eu-1 by its agent",
		"what 1 Work had it run is still to be removed from cluster eu-1 by its agent; nothing has been heard of its agent for 15s: once the control plane is sure of that, it goes on without",
	}
	if diff := cmp.Diff(want, l.reported); diff != "" {
		t.Errorf("of an agent that has just said that the cluster is ready, and renews its Lease later (-want +got):\n%s", diff)
	}
	l = newLeaves(t, clusterv1alpha1.Push)
	l.away = errors.New("connection refused")
	for range 5 {
		l.after(3*time.Second, l.cluster)
	}
	want = []string{
		"waiting for cluster eu-1: what 1 Work had it run is still to be removed there; it has not answered for 6s: once the control plane is sure of that, it goes on without",
		"waiting for cluster eu-1: what 1 Work had it run is still to be removed there; it has not answered for 12s: once the control plane is sure of that, it goes on without",
	}
	if diff := cmp.Diff(want, l.reported); diff != "" {
		t.Errorf("of a member (-want +got):\n%s", diff)
	}
	l = newLeaves(t, clusterv1alpha1.Pull)
	l.judged("Service shop/web and Namespace shop are somebody else's")
	l.after(time.Second, l.cluster)
	want = []string{"nothing is left that is to be removed from cluster eu-1: waiting for the rest of it to leave"}
	if diff := cmp.Diff(want, l.reported); diff != "" {
		t.Errorf("where nothing is the fleet's (-want +got):\n%s", diff)
	}
}

// TestADepartureNamesWhatIsPlacedThereStill checks that templates that are still
// placed in the cluster are named: it does not leave before, though nothing runs
// there any more.
func TestADepartureNamesWhatIsPlacedThereStill(t *testing.T) {
	l := newLeaves(t, clusterv1alpha1.Push)
	l.after(0, l.cluster)
	l.letGo()
	place := func(name, scheduler, decision string) *workv1alpha2.ResourceBinding {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		if decision != "" {
			b.Annotations = map[string]string{workv1alpha2.SchedulingDecisionAnnotation: decision}
		}
		b.Spec.SchedulerName, b.Spec.Clusters = scheduler, []workv1alpha2.TargetCluster{{Name: "eu-1"}}
		b.Spec.Resource = workv1alpha2.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: name}
		return b
	}
	elsewhere := place("elsewhere", "", "")
	elsewhere.Spec.Clusters[0].Name = "eu-2"
	for _, b := range []client.Object{
		elsewhere, place("a", "", `{"reason":"QuotaExceeded","message":"quota team is exceeded","at":null}`), place("b", "theirs", ""), place("c", "", ""),
		&workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: place("d", "", "").Spec},
	} {
		if err := l.hub.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		l.after(3*time.Second, l.cluster)
	}
	placed := "Deployment shop/a (quota team is exceeded), Deployment shop/b (which the scheduler theirs is to place elsewhere), Deployment shop/c (which is not placed anew yet), 1 more"
	want := []string{"nothing is left that is to be removed from cluster eu-1: waiting for what is placed there still: " + placed}
	if diff := cmp.Diff(want, l.reported); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	l.cluster.Finalizers = []string{clusterv1alpha1.ClusterControllerFinalizer}
	if err := l.hub.Create(t.Context(), l.cluster); err != nil {
		t.Fatal(err)
	}
	err := join.Unjoin(t.Context(), join.UnjoinOptions{Name: "eu-1", Hub: l.hub, Wait: time.Millisecond})
	says := "the cluster has not left after 1ms: nothing that the fleet ran is left there, but this is placed there still: " + placed +
		"; have it placed elsewhere, or delete it, and run again, or with --force to let the cluster go all the same"
	if !errors.Is(err, join.ErrStays) || err.Error() != says {
		t.Errorf("it ends with %v, want %s", err, says)
	}
}

// TestTheClusterIsFoundBeforeItIsAsked: whoever waits can be told at once what for.
func TestTheClusterIsFoundBeforeItIsAsked(t *testing.T) {
	l := newLeaves(t, clusterv1alpha1.Push)
	var order []string
	l.d.Answers = func(context.Context) error {
		order = append(order, "asked")
		return nil
	}
	o := join.UnjoinOptions{Name: "eu-1", Hub: l.hub, Wait: time.Millisecond, Departure: l.d, Found: func() { order = append(order, "found") }, DryRun: true}
	if err := join.Unjoin(t.Context(), o); !apierrors.IsNotFound(err) || len(order) > 0 {
		t.Errorf("without the cluster it ends with %v, after %q", err, order)
	}
	if err := l.hub.Create(t.Context(), l.cluster); err != nil {
		t.Fatal(err)
	}
	if err := join.Unjoin(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"found", "asked"}, order); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
